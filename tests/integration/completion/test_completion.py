"""Completion in shells and in kubectl, with the names of jobs of a cluster that answers at once."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client

BIN = Path(sys.executable).parent
NAMES = ("bert", "vit", "vit-large")


def make_environment(folder: Path, **variables: str) -> dict[str, str]:
    path = f"{BIN}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig"), **variables}


def make_bash_words(*words: str) -> dict[str, str]:
    return {
        "_MUSTER_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["muster", *words]),
        "COMP_CWORD": str(len(words)),
    }


async def run(folder: Path, command: list[str], variables: dict[str, str]) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=make_environment(folder, **variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, messages = await process.communicate()
    return output.decode(), messages.decode()


async def answer(request: web.Request) -> web.Response:
    assert request.path == "/apis/muster.dev/v1alpha1/namespaces/team-a/distributedtrainingjobs"
    assert request.headers["Accept"].startswith("application/json;as=PartialObjectMetadataList")
    names = (*NAMES, "no\x1b[2Jname")
    return web.json_response(
        {"kind": "List", "metadata": {}, "items": [{"metadata": {"name": name}} for name in names]}
    )


async def complete_on(app: web.Application, folder: Path, command: list[str], **variables: str) -> tuple[str, str]:
    async with api_client(app, folder):
        return await run(folder, command, variables)


def make_app() -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def test_bash_completes_commands_and_jobs(tmp_path: Path) -> None:
    muster = [str(BIN / "muster")]
    assert (await run(tmp_path, muster, make_bash_words("ran"))) == ("ranks\n", "")
    words = make_bash_words("ranks", "-n", "team-a", "vi")
    assert (await complete_on(make_app(), tmp_path, muster, **words)) == ("vit\nvit-large\n", "")


async def test_kubectl_completes_commands_and_jobs(tmp_path: Path) -> None:
    program = str(BIN / "kubectl_complete-muster")
    output, messages = await run(tmp_path, [program, "ran"], {})
    assert (output, messages) == ("ranks\tShow every rank of a job on a cluster.\n:4\n", "")
    command = [program, "wait", "-n", "team-a", ""]
    assert (await complete_on(make_app(), tmp_path, command)) == ("bert\nvit\nvit-large\n:4\n", "")
    assert (await run(tmp_path, [program, "validate", "-f", "job"], {})) == (":0\n", "")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
async def test_kubectl_runs_and_completes_the_plug_in(tmp_path: Path) -> None:
    output, _ = await run(tmp_path, ["kubectl", "muster", "ranks", "--help"], {})
    assert output.startswith("Usage: kubectl muster ranks ")
    # After the completions kubectl prints its own directive.
    output, _ = await run(tmp_path, ["kubectl", "__complete", "muster", "ran"], {})
    assert output.splitlines()[0].startswith("ranks")


async def hang(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


async def fail(_: web.Request) -> web.Response:
    return web.Response(status=403, text="no")


@pytest.mark.parametrize("handler", [hang, fail])
async def test_a_cluster_that_does_not_answer_gives_no_names_and_no_error(
    handler: Callable[[web.Request], Awaitable[web.Response]], tmp_path: Path
) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    words = make_bash_words("logs", "")
    started_at = time.monotonic()
    assert (await complete_on(app, tmp_path, [str(BIN / "muster")], **words)) == ("\n", "")
    # the limit is a second; the machine may be busy
    assert time.monotonic() - started_at < 15


@pytest.mark.parametrize("content", ["", "{", json.dumps({"current-context": "x"})])
async def test_without_a_cluster_there_are_no_names_and_no_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(content, encoding="utf-8")
    assert (await run(tmp_path, [str(BIN / "muster")], make_bash_words("ranks", ""))) == ("\n", "")


@pytest.mark.parametrize(
    ("shell", "text"),
    [
        ("bash", "complete -o default -F _muster_completion muster"),
        ("zsh", "#compdef muster"),
        ("fish", "complete --command muster"),
    ],
)
def test_the_script_of_a_shell(shell: str, text: str, tmp_path: Path) -> None:
    done = subprocess.run([BIN / "muster", "completion", shell], capture_output=True, text=True, check=True)
    assert text in done.stdout
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(done.stdout, encoding="utf-8")
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_an_unknown_shell() -> None:
    done = subprocess.run([BIN / "muster", "completion", "tcsh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


def test_usage_lines_name_the_program(tmp_path: Path) -> None:
    for name, usage in (("muster", "muster"), ("kubectl-muster", "kubectl muster")):
        done = subprocess.run([BIN / name, "ranks"], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"Usage: {usage} ranks [OPTIONS]")

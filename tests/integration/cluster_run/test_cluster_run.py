"""`muster run --on cluster` against an API server with one job."""

import asyncio
import base64
import io
import os
import signal
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from cluster.terminal import CTRL_C, Terminal
from fakes.api_server import make_failure
from fakes.job_cluster import CONFIG_MAPS, JOBS, NAMESPACE, JobCluster, served
from muster.api.names import SOURCE_ANNOTATION
from support.muster_process import MUSTER, MusterProcess, run_muster

SPEC = "{nodes: 1, procsPerNode: 2, launcher: {direct: {}}, image: python, command: [python3, train.py]}"
FILE = f"""
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {{name: vit}}
spec: {SPEC}
"""
RESUME = 'PATCH vit {"suspend": null}'
SUSPEND = 'PATCH vit {"suspend": true}'


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print('edited')\n", encoding="ascii")
    (tmp_path / "job.yaml").write_text(FILE, encoding="ascii")
    return folder


def make_words(code: Path, *more: str) -> list[str]:
    place = ["--on", "cluster", "--namespace", NAMESPACE]
    return ["run", "-f", str(code.parent / "job.yaml"), *place, "--source", str(code), *more]


@asynccontextmanager
async def begun(cluster: JobCluster, code: Path, *more: str) -> AsyncIterator[MusterProcess]:
    """Yield the command while the cluster is served."""
    async with served(cluster, code.parent) as kubeconfig:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        with MusterProcess(make_words(code, *more), env=environment, stdout=PIPE, stderr=PIPE) as process:
            try:
                yield process
            finally:
                process.kill()


async def end(process: MusterProcess) -> tuple[int, str, str]:
    output, messages = await asyncio.to_thread(process.communicate, timeout=60.0)
    return process.returncode, output.decode(), messages.decode()


async def run(cluster: JobCluster, code: Path, *more: str) -> tuple[int, str, str]:
    async with begun(cluster, code, *more) as process:
        return await end(process)


def make_job(phase: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": "vit", "namespace": NAMESPACE, "uid": "old", "generation": 1, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "message": "a message", **status}}


def read_files(config_map: dict[str, Any]) -> dict[str, bytes]:
    archive = base64.b64decode(config_map["binaryData"]["source.tar.gz"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {member.name: (opened.extractfile(member) or io.BytesIO()).read() for member in opened.getmembers()}


async def test_a_run_from_the_code_to_the_end(code: Path) -> None:
    cluster = JobCluster(broken_watches=1, has_pod=True)
    async with begun(cluster, code) as process:
        await cluster.until(RESUME)
        (name,) = cluster.config_maps
        assert cluster.requests == ["POST distributedtrainingjobs vit", f"POST configmaps {name}", RESUME]
        job = cluster.jobs["vit"]
        assert job["metadata"]["annotations"] == {SOURCE_ANNOTATION: name}
        assert "suspend" not in job["spec"]
        (owner,) = cluster.config_maps[name]["metadata"]["ownerReferences"]
        assert owner["uid"] == job["metadata"]["uid"]
        assert read_files(cluster.config_maps[name]) == {"train.py": b"print('edited')\n"}
        cluster.log = b"[rank 0] step 1\n[rank 1] step 1\n[torchrun] ends\n"
        await cluster.tell("Running", "Running", "2 of 2 ranks run")
        await cluster.tell("Succeeded", "Complete", "All 2 ranks succeeded")
        result, output, messages = await end(process)
    assert (result, output) == (0, "")
    lines = messages.splitlines()
    assert lines[0] == "packed 1 file (0 KiB)"
    assert lines[1] == "team-a/vit is created; Ctrl-C suspends it"
    assert [line for line in lines if line.startswith("[rank")] == ["[rank 0] step 1", "[rank 1] step 1"]
    assert any(line.endswith("Succeeded: All 2 ranks succeeded") for line in lines)


async def test_a_failed_job_and_only_one_ranks_lines(code: Path) -> None:
    cluster = JobCluster(has_pod=True, log=b"[rank 0] step 1\n[rank 1] ValueError\n")
    async with begun(cluster, code, "--rank", "1", "-o", "json") as process:
        await cluster.until(RESUME)
        await cluster.tell("Failed", "Failed", "Rank 1 on vit-0 exited with 3")
        result, output, messages = await end(process)
    assert result == 1
    assert '"phase": "Failed"' in output
    assert "[rank 1] ValueError\n" in messages
    assert "[rank 0]" not in messages
    assert messages.endswith("`muster describe vit` shows the failure, and what to do\n")


async def test_detached(code: Path) -> None:
    result, output, messages = await run(JobCluster(), code, "--detach")
    assert (result, output) == (0, "")
    assert "team-a/vit is created: `muster ranks vit` shows it" in messages


async def test_a_job_that_its_file_suspends_is_not_started(code: Path) -> None:
    file = code.parent / "job.yaml"
    file.write_text(FILE.replace("{nodes", "{suspend: true, nodes"), encoding="ascii")
    cluster = JobCluster()
    result, _, messages = await run(cluster, code)
    assert result == 0
    assert "`muster resume vit` starts it" in messages
    assert cluster.jobs["vit"]["spec"]["suspend"] is True
    assert SOURCE_ANNOTATION in cluster.jobs["vit"]["metadata"]["annotations"]


STARTED = {"attempt": 1, "startTime": "2026-11-21T05:00:00Z"}


@pytest.mark.parametrize(
    ("job", "hint"),
    [
        (make_job("Running", **STARTED), "`muster rerun vit --source "),
        (
            make_job("Failed", conditions=[JobCluster.make_condition("Failed")]),
            "(Failed: a message); --replace",
        ),
        (make_job("Suspended", conditions=[JobCluster.make_condition("Suspended")]), "`muster resume vit` continues"),
        (make_job("Pending"), "`muster ranks vit` shows it"),
    ],
)
async def test_a_name_that_is_taken(job: dict[str, Any], hint: str, code: Path) -> None:
    cluster = JobCluster(jobs={"vit": job})
    result, _, messages = await run(cluster, code)
    assert result == 2
    assert "muster: DistributedTrainingJob team-a/vit exists (" in messages
    assert hint in messages
    assert cluster.requests == []


async def test_replace_deletes_the_job_and_its_code_first(code: Path) -> None:
    cluster = JobCluster()
    await run(cluster, code, "--detach")
    (name,) = cluster.config_maps
    first = cluster.jobs["vit"]["metadata"]["uid"]
    cluster.requests.clear()
    assert (await run(cluster, code, "--detach", "--replace"))[0] == 0
    # Kubernetes deletes the code of the earlier job late.
    expected = ["DELETE vit", "POST distributedtrainingjobs vit", f"DELETE {name}", f"POST configmaps {name}", RESUME]
    assert cluster.requests == expected
    uid = cluster.jobs["vit"]["metadata"]["uid"]
    assert uid != first
    assert cluster.config_maps[name]["metadata"]["ownerReferences"][0]["uid"] == uid


async def test_a_job_that_the_cluster_refuses(code: Path) -> None:
    refusal = make_failure(422, "Invalid", "spec.metrics[0].regex: found '('")
    cluster = JobCluster(jobs={"vit": make_job("Failed")}, refusals={f"POST {JOBS}?dryRun": refusal})
    result, _, messages = await run(cluster, code, "--replace")
    assert result == 2
    assert messages.endswith("muster: spec.metrics[0].regex: found '('\n")
    assert cluster.requests == []


async def test_missing_rights(code: Path) -> None:
    forbidden = "cannot create resource in the namespace team-a"
    for path, text in (
        (f"{JOBS}?dryRun", "denies the request"),
        (f"{CONFIG_MAPS}?dryRun", "--source needs a ConfigMap"),
    ):
        cluster = JobCluster(refusals={f"POST {path}": make_failure(403, "Forbidden", forbidden)})
        result, _, messages = await run(cluster, code)
        assert result == 2
        assert text in messages
        assert forbidden in messages
        assert cluster.requests == []


async def test_a_job_whose_code_can_t_be_sent_is_deleted(code: Path) -> None:
    cluster = JobCluster(refusals={f"POST {CONFIG_MAPS}": make_failure(403, "Forbidden", "quota exceeded")})
    result, _, messages = await run(cluster, code)
    assert result == 2
    assert "quota exceeded" in messages
    assert cluster.requests == ["POST distributedtrainingjobs vit", "DELETE vit"]


async def test_ctrl_c_suspends_the_job(code: Path) -> None:
    cluster = JobCluster()
    async with begun(cluster, code) as process:
        await cluster.until(RESUME)
        await cluster.tell("Running", "Running", "2 of 2 ranks run")
        await read_until(process, "2 of 2 ranks run")
        process.send_signal(signal.SIGINT)
        await cluster.until(SUSPEND)
        await cluster.tell("Suspended", "Suspended")
        result, _, messages = await end(process)
    assert result == 130
    assert "team-a/vit is suspended: `muster ranks vit` shows it, `muster resume vit` continues it" in messages


async def test_a_second_ctrl_c_does_not_wait(code: Path) -> None:
    cluster = JobCluster()
    async with begun(cluster, code) as process:
        await cluster.until(RESUME)
        await cluster.tell("Running", "Running", "2 of 2 ranks run")
        await read_until(process, "2 of 2 ranks run")
        process.send_signal(signal.SIGINT)
        await cluster.until(SUSPEND)
        process.send_signal(signal.SIGINT)
        result, _, messages = await end(process)
    assert result == 130
    assert "team-a/vit will be suspended" in messages


async def test_a_job_that_may_not_be_suspended(code: Path) -> None:
    cluster = JobCluster()
    async with begun(cluster, code) as process:
        await cluster.until(RESUME)
        await cluster.tell("Running", "Running", "2 of 2 ranks run")
        await read_until(process, "2 of 2 ranks run")
        cluster.refusals[f"PATCH {JOBS}/vit"] = make_failure(403, "Forbidden", "cannot patch")
        process.send_signal(signal.SIGINT)
        result, _, messages = await end(process)
    assert result == 130
    assert "team-a/vit can't be suspended and continues: the cluster denies the request: cannot patch" in messages


async def test_a_job_that_is_deleted(code: Path) -> None:
    cluster = JobCluster()
    async with begun(cluster, code) as process:
        await cluster.until(RESUME)
        await cluster.tell("Running", "Running", "2 of 2 ranks run")
        await read_until(process, "2 of 2 ranks run")
        job = cluster.jobs.pop("vit")
        await cluster._notify(job)
        result, _, messages = await end(process)
    assert result == 1
    assert messages.endswith("team-a/vit was deleted\n")


async def test_the_board_on_a_terminal(code: Path) -> None:
    cluster = JobCluster(has_pod=True, log=b"[rank 0] step 1\n")
    async with served(cluster, code.parent) as kubeconfig:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        with Terminal([str(MUSTER), *make_words(code)], environment) as terminal:
            await cluster.until(RESUME)
            await cluster.tell("Running", "Running", "2 of 2 ranks run")
            await asyncio.to_thread(terminal.until, lambda text: "vit  Running" in text and "[rank 0] step 1" in text)
            terminal.press(CTRL_C)
            await asyncio.to_thread(terminal.until, lambda text: "Ctrl-C again to leave at once" in text)
            await cluster.until(SUSPEND)
            await cluster.tell("Suspended", "Suspended")
            assert await asyncio.to_thread(terminal.end) == 130
            assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "cluster", "--dir", "x"], "--dir is for runs on this machine; leave it out with --on cluster"),
        (["--replace"], "--replace works only with --on cluster"),
        (["--source", "."], "--source works only with --local and --on cluster"),
        (["--on", "cluster", "-n", "other"], "the file's metadata.namespace is team-a"),
        (["--on", "cluster", "--rank", "9"], "--rank 9: the job has ranks 0 to 1"),
        (["--on", "cluster", "--source", "nowhere"], "--source nowhere: there is no such file or folder"),
        (["--on", "cluster", "--source", "empty"], "has no train.py, which the job's command runs"),
        (["--on", "cluster", "--source", "large"], "Keep data out of the folder, or use spec.source.git or s3"),
    ],
)
async def test_bad_options(words: list[str], message: str, code: Path) -> None:
    (code.parent / "empty").mkdir()
    (code.parent / "empty" / "other.py").touch()
    (code.parent / "large").mkdir()
    (code.parent / "large" / "train.py").write_bytes(os.urandom(600 * 1024))
    (code.parent / "job.yaml").write_text(FILE.replace("name: vit", "name: vit, namespace: team-a"), encoding="ascii")
    ended = await asyncio.to_thread(run_muster, "run", "-f", "job.yaml", *words, cwd=code.parent)
    assert ended.exit_code == 2
    assert message in ended.messages


async def read_until(process: MusterProcess, text: str) -> None:
    assert process.stderr is not None
    while line := await asyncio.to_thread(process.stderr.readline):
        if text in line.decode():
            return
    raise AssertionError(text)

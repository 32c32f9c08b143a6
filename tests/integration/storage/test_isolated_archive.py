"""A hostile repository affects only the process that reads it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from fakes.git_server import commit, create_repository, git_server, pack_server
from fakes.slow_host import SlowHost, slow_host
from muster.render.storage.errors import StorageError
from muster.render.storage.source_archive import SourceArchive, make_members, pack_files
from muster.render.storage.source_files import SourceFile
from muster.storage.archive import isolated_archive
from muster.storage.archive.isolated_archive import make_archive
from muster.storage.archive.messages import ArchiveRequest
from muster.storage.git.address_policy import AddressPolicy
from support import packs
from support.archive_requests import LIMITS, build_archive_request
from support.packs import BLOB, COMMIT, REF_DELTA, TREE, build_delta, build_entry, copy

PATIENCE_SECONDS = 60.0
TESTS = Path(__file__).parents[2]
_GIT = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nX: "


async def _refused(asked: ArchiveRequest) -> StorageError:
    with TemporaryFile() as into, pytest.raises(StorageError) as caught:
        await make_archive(asked, into)
    return caught.value


@pytest.fixture
def slow() -> Iterator[SlowHost]:
    with slow_host(_GIT, b"x") as host:
        yield host


async def _is_reported(event: object) -> bool:
    assert hasattr(event, "wait")
    return bool(await asyncio.to_thread(event.wait, PATIENCE_SECONDS))


async def test_a_commit_becomes_the_archive_that_its_files_make(tmp_path: Path) -> None:
    name = commit(create_repository(tmp_path / "code.git"), {"train.py": "print(1)\n", "lib/a.py": "x = 1\n"})
    with git_server(tmp_path) as server, TemporaryFile() as into:
        asked = replace(build_archive_request(f"{server.url}/code.git", name), added={"muster_entry.py": b"run()\n"})
        made = await make_archive(asked, into)
        into.seek(0)
        data = into.read()
    file = io.BytesIO()
    files = {"train.py": b"print(1)\n", "lib/a.py": b"x = 1\n", "muster_entry.py": b"run()\n"}
    wanted = pack_files(make_members({path: SourceFile(content) for path, content in files.items()}), file)
    assert (made, data) == (wanted, file.getvalue())
    assert isinstance(made, SourceArchive)


async def test_what_muster_adds_is_not_written_over(tmp_path: Path) -> None:
    name = commit(create_repository(tmp_path / "code.git"), {"muster_entry.py": "evil()\n"})
    with git_server(tmp_path) as server:
        result = await _refused(
            replace(build_archive_request(f"{server.url}/code.git", name), added={"muster_entry.py": b""})
        )
    assert "rename it" in result.message


def _served(*entries: bytes, root: bytes) -> tuple[bytes, str]:
    """Return a pack with a commit of the tree `root`, and the commit's name."""
    value = packs.commit_of(packs.name(TREE, root))
    return packs.pack(build_entry(COMMIT, value), build_entry(TREE, root), *entries), packs.name(COMMIT, value)


def _many_copies() -> tuple[bytes, str]:
    # a megabyte whose header claims a terabyte
    base = b"x" * 2**20
    value = build_delta(len(base), 2**40, *[copy(0, len(base))] * 2**17)
    return _served(
        build_entry(BLOB, base), build_entry(REF_DELTA, value, bytes.fromhex(packs.name(BLOB, base))), root=b""
    )


def _long_list(files: int) -> tuple[bytes, str]:
    return _served(root=packs.build_tree(*(("100644", f"{n:07}", "1" * 40) for n in range(files))))


def _folders(times: int, depth: int) -> tuple[bytes, str]:
    entries, root = [], b""
    for _ in range(depth):
        inner = packs.name(TREE, root)
        entries.append(build_entry(TREE, root))
        root = packs.build_tree(*(("40000", f"{n:03}", inner) for n in range(times)))
    return _served(*entries, root=root)


def _link() -> tuple[bytes, str]:
    blob = b"/var/run/secrets/kubernetes.io/serviceaccount/token"
    return _served(build_entry(BLOB, blob), root=packs.build_tree(("120000", "out", packs.name(BLOB, blob))))


def _no_tree() -> tuple[bytes, str]:
    return _served(root=b"100644 a")


@pytest.mark.parametrize(
    ("bomb", "says"),
    [
        pytest.param(_many_copies, "more than 256 MiB", id="delta"),
        pytest.param(lambda: _folders(20, 60), "more than 30000 folders", id="tree bomb"),
        pytest.param(lambda: _folders(1, 2000), "nested more than 64 levels", id="deep tree"),
        pytest.param(_link, "is a symbolic link", id="link"),
        pytest.param(_no_tree, "can't be fetched", id="no tree"),
        pytest.param(lambda: _long_list(250_000), "the list of a folder has more than 8 MiB", id="long list"),
        pytest.param(lambda: (b"JUNK" * 9, "1" * 40), "can't be fetched", id="no pack"),
    ],
)
async def test_bombs_end_in_a_reason(bomb: object, says: str) -> None:
    assert callable(bomb)
    content, name = bomb()
    with pack_server(content) as url:
        result = await _refused(build_archive_request(url, name))
    assert says in result.message
    assert result.message.startswith("spec.source.git")


async def test_a_commit_that_needs_too_much_memory_is_refused() -> None:
    content, name = _long_list(200_000)
    with pack_server(content) as url:
        result = await _refused(build_archive_request(url, name, replace(LIMITS, memory_bytes=40 * 2**20)))
    assert result.reason == "SourceRefused"
    assert "takes more than 40 MiB of memory" in result.message


async def test_a_commit_that_takes_too_long_to_unpack_is_refused() -> None:
    base = b"x" * 1000
    result = 10_000_000
    value = build_delta(len(base), result, bytes([0x91, 0, 1]) * result)
    content, name = _served(
        build_entry(BLOB, base), build_entry(REF_DELTA, value, bytes.fromhex(packs.name(BLOB, base))), root=b""
    )
    with pack_server(content) as url:
        candidate = await _refused(build_archive_request(url, name, replace(LIMITS, cpu_seconds=1)))
    assert candidate.message.endswith("reading the commit takes more than 1 s of processor time")


async def test_a_file_grows_no_larger_than_is_allowed(tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "code.git")
    (repository / "weights").write_bytes(os.urandom(200_000))
    name = commit(repository, {})
    with git_server(tmp_path) as server:
        result = await _refused(
            build_archive_request(f"{server.url}/code.git", name, replace(LIMITS, file_bytes=100_000))
        )
    assert "File too large" in result.message


async def test_a_host_that_drips_is_left_at_the_end_of_the_time_and_nothing_stays_on_disk(
    slow: SlowHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # On a busy machine the process may need seconds before it asks the host.
    for seconds in (1.0, 4.0, 16.0, 64.0):
        result = await _refused(
            build_archive_request(f"http://{slow.netloc}/code.git", limits=replace(LIMITS, seconds=seconds))
        )
        assert result.reason == "GitTooSlow"
        if slow.asked.is_set():
            break
    assert await _is_reported(slow.left)
    assert not list(tmp_path.iterdir())  # noqa: ASYNC240 - it is empty


async def test_who_is_not_waited_for_ends_at_once(slow: SlowHost) -> None:
    with TemporaryFile() as into:
        task = asyncio.create_task(make_archive(build_archive_request(f"http://{slow.netloc}/code.git"), into))
        assert await _is_reported(slow.asked)
        assert _children()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await _is_reported(slow.left)
    assert not _children()


def test_it_ends_with_the_process_that_waits_for_it(slow: SlowHost) -> None:
    waiting = textwrap.dedent(
        f"""
        import asyncio
        from tempfile import TemporaryFile
        from support.archive_requests import build_archive_request
        from muster.storage.archive.isolated_archive import make_archive
        with TemporaryFile() as into:
            asyncio.run(make_archive(build_archive_request("http://{slow.netloc}/code.git"), into))
        """
    )
    operator = subprocess.Popen((sys.executable, "-c", waiting), env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert slow.asked.wait(PATIENCE_SECONDS)
    operator.send_signal(signal.SIGKILL)
    operator.wait()
    assert slow.left.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("address_policy", [AddressPolicy.NAMED, AddressPolicy.PUBLIC])
async def test_the_operators_own_machine_is_not_asked(tmp_path: Path, address_policy: AddressPolicy) -> None:
    name = commit(create_repository(tmp_path / "code.git"), {"a": "1"})
    with git_server(tmp_path) as server:
        result = await _refused(
            replace(build_archive_request(f"{server.url}/code.git", name), address_policy=address_policy)
        )
        assert not server.asked
    assert result.reason == "SourceRefused"
    assert "is a loopback, link-local or multicast address" in result.message


async def test_a_redirect_to_the_metadata_service_is_not_followed(tmp_path: Path) -> None:
    name = commit(create_repository(tmp_path / "code.git"), {"a": "1"})
    with git_server(tmp_path) as server:
        server.redirect = "http://169.254.169.254/latest/meta-data/iam/"
        result = await _refused(build_archive_request(f"{server.url}/code.git", name))
        assert len(server.asked) == 1
    assert "redirects to another host" in result.message or "the host redirects to" in result.message


def test_the_process_inherits_nothing_that_proves_who_the_operator_is() -> None:
    environment = isolated_archive._make_environment(
        {
            "AWS_ACCESS_KEY_ID": "AKIA",
            "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
            "KUBECONFIG": "/etc/kube/config",
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "MUSTER_GIT_TOKEN": "secret",
            "PYTHONPATH": "/code",
            "https_proxy": "http://proxy:3128",
        }
    )
    assert environment == {"https_proxy": "http://proxy:3128", "MALLOC_ARENA_MAX": "1"}


CONFINED = """
import os, signal, socket, subprocess, sys
from muster.storage.archive.confinement import Limits, apply_limits, exit_with_parent
exit_with_parent(os.getppid())
known = open({known!r}, "w+b")
if not apply_limits(Limits(2**28, 2**31, 60, 2**20, 60.0)):
    sys.exit("no Landlock")
def refused(attempt):
    try:
        attempt()
    except OSError:
        return True
    return False
print(refused(lambda: open({token!r})), refused(lambda: open("/proc/self/environ")),
      refused(lambda: open(f"/proc/{{os.getppid()}}/environ")), refused(lambda: open({token!r} + ".new", "w")),
      refused(lambda: os.listdir("/")), refused(lambda: subprocess.run(["true"])),
      refused(lambda: socket.create_server(("127.0.0.1", 0))), refused(lambda: os.kill(os.getppid(), 0)))
known.write(b"x")
import encodings.idna, ssl
ssl.create_default_context()
socket.getaddrinfo("localhost", 80)
"""


def test_a_confined_process_reads_no_token_and_no_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    program = CONFINED.format(known=str(tmp_path / "known"), token=str(tmp_path / "token"))
    done = subprocess.run((sys.executable, "-c", program), check=False, capture_output=True, text=True, cwd="/")
    if "no Landlock" in done.stderr:
        pytest.skip("this kernel has no Landlock")
    # the last two need Linux 6.7 and 6.12
    assert done.stdout.split()[:6] == ["True"] * 6, done.stderr
    assert done.returncode == 0, done.stderr


def _children() -> list[str]:
    result = []
    for entry_ in Path("/proc").iterdir():
        try:
            if entry_.name.isdigit() and f"PPid:\t{os.getpid()}\n" in (entry_ / "status").read_text():
                command = (entry_ / "cmdline").read_text()
                result += [command] if "muster.storage.archive.process" in command else []
        except OSError:
            continue
    return result

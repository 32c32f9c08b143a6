"""The operator disconnects from a git host that is too slow or sends too much."""

from __future__ import annotations

import pytest

from fakes.slow_host import slow_host
from muster.render.storage.errors import StorageError
from muster.render.storage.git_folder import GitFolder
from muster.storage.git import source as git_source
from muster.storage.git.source import fetch_commit

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"


def _line(text: bytes) -> bytes:
    return b"%04x%s" % (len(text) + 4, text)


def _refs(count: int) -> bytes:
    return b"".join(_line(b"%040x refs/heads/%s\n" % (number, b"x" * 900)) for number in range(count))


_SERVICE = _line(b"# service=git-upload-pack\n") + b"0000" + _line(b"1" * 40 + b" HEAD\0side-band-64k shallow\n")


@pytest.mark.parametrize(
    ("scheme", "first", "then"),
    [
        pytest.param("http", b"", b"", id="says nothing"),
        pytest.param("https", b"", b"", id="does not begin with TLS"),
        pytest.param("https", b"\x16\x03\x03\x40\x00", b"\x02", id="drips TLS"),
        pytest.param("http", _HEAD + b"X: ", b"x", id="drips headers"),
        pytest.param("http", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", id="always continues"),
        pytest.param("http", _HEAD + b"\r\n", b"1", id="drips branches"),
        pytest.param("http", b"HTTP/1.1 404 Not Found\r\nX: ", b"x", id="drips a refusal"),
    ],
)
def test_a_host_that_drips_is_left_when_the_time_is_over(
    scheme: str, first: bytes, then: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_source, "FETCH_SECONDS", 0.6)
    with slow_host(first, then) as host, pytest.raises(StorageError) as caught:
        fetch_commit(GitFolder(url=f"{scheme}://{host.netloc}/code.git", commit="1" * 40, path=""))
    assert host.left.wait(10)
    assert caught.value.reason == "GitTooSlow"
    assert f'"{host.netloc}" took more than 0.01 minutes' in caught.value.message
    assert not caught.value.is_retryable


def test_what_a_host_says_without_end_is_not_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_source, "MAX_OVERHEAD_BYTES", 2**20)
    with slow_host(_HEAD + b"\r\n" + _SERVICE, _refs(100)) as host, pytest.raises(StorageError) as caught:
        fetch_commit(GitFolder(url=f"http://{host.netloc}/code.git", commit="1" * 40, path=""))
    assert host.left.wait(10)
    assert caught.value.reason == "SourceRefused"
    assert "sends more than 1 MiB in addition to the commit" in caught.value.message
    # plus the data in the machine's own buffers
    assert host.sent < 50 * 2**20


def test_why_a_host_is_not_reached_is_said() -> None:
    with slow_host(b"", b"") as host:
        closed = host.netloc
    with pytest.raises(StorageError, match="Connection refused") as caught:
        fetch_commit(GitFolder(url=f"http://{closed}/code.git", commit="1" * 40, path=""))
    assert caught.value.reason == "GitUnreachable"

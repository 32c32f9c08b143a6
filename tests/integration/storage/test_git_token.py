"""The operator sends a token only to the job's host, over HTTPS."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from fakes.git_server import GitServer, commit, create_repository, git_server
from fakes.http_site import At
from muster.collector.trust.certificate import issue_certificate, make_server_context
from muster.render.storage.errors import StorageError
from muster.render.storage.git_folder import GitFolder
from muster.render.storage.git_token import parse_token
from muster.render.storage.source_files import SourceFile
from muster.render.storage.storage_plan import CodePlan
from muster.storage.archive.isolated_archive import make_archive
from muster.storage.code import read_code
from muster.storage.dependencies import StorageDependencies
from muster.storage.git.source import fetch_commit
from support.archive_requests import build_archive_request

TOKEN = "ghp-5up3r-53cr3t"
BASIC = b64encode(f"x-access-token:{TOKEN}".encode()).decode()


@dataclass(frozen=True)
class Hosted:
    """A repository that requires the token."""

    server: GitServer
    place: GitFolder


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    name = commit(create_repository(tmp_path / "repositories" / "code.git"), {"train.py": "print(1)\n"})
    certificate = issue_certificate(("127.0.0.1",), time.time(), 86400.0)
    authority = tmp_path / "authority.pem"
    authority.write_text(certificate.authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with git_server(tmp_path / "repositories", At(tls=make_server_context(certificate))) as server:
        server.password = f"x-access-token:{TOKEN}"
        yield Hosted(server, GitFolder(f"{server.url}/code.git", name, "", "x-access-token"))


def _refused(place: GitFolder, token: str | None) -> StorageError:
    with pytest.raises(StorageError) as caught:
        fetch_commit(place, token)
    return caught.value


def test_the_token_opens_the_repository(hosted: Hosted) -> None:
    assert fetch_commit(hosted.place, TOKEN) == {"train.py": SourceFile(b"print(1)\n")}
    assert set(hosted.server.shown) == {f"Basic {BASIC}"}


def test_the_archiving_process_gets_the_token_and_no_file_contains_it(hosted: Hosted) -> None:
    asked = replace(build_archive_request(hosted.place.url), repository=hosted.place, token=TOKEN)
    assert TOKEN not in repr(asked)
    with TemporaryFile() as into:
        made = asyncio.run(make_archive(asked, into))
        into.seek(0)
        content = into.read()
    assert made.size == len(content)
    assert set(hosted.server.shown) == {f"Basic {BASIC}"}


@pytest.mark.parametrize(
    ("token", "username", "says"),
    [
        pytest.param(None, None, "requires a token", id="none"),
        pytest.param("wrong", "x-access-token", "rejects the token", id="another"),
        pytest.param(TOKEN, "somebody", 'for user "somebody"', id="of another user"),
    ],
)
def test_a_host_that_refuses_the_token_is_reported(
    hosted: Hosted, token: str | None, username: str | None, says: str
) -> None:
    result = _refused(replace(hosted.place, username=username), token)
    assert result.reason == "GitAccessDenied"
    assert says in result.message
    assert token is None or token not in result.message


def test_a_repository_that_the_token_may_not_read_is_reported(hosted: Hosted) -> None:
    result = _refused(replace(hosted.place, url=f"{hosted.server.url}/other.git"), TOKEN)
    assert result.reason == "GitUnreachable"
    assert "with this token" in result.message


def test_a_redirect_is_not_shown_the_token(hosted: Hosted, tmp_path: Path) -> None:
    with git_server(tmp_path / "repositories") as other:
        hosted.server.redirect = f"{other.url}/code.git/info/refs?service=git-upload-pack"
        result = _refused(hosted.place, TOKEN)
        assert not other.asked
    assert "redirects to" in result.message


def test_a_token_is_not_sent_without_tls(tmp_path: Path) -> None:
    name = commit(create_repository(tmp_path / "code.git"), {"a": "1"})
    with git_server(tmp_path) as server:
        result = _refused(GitFolder(f"{server.url}/code.git", name, "", "x-access-token"), TOKEN)
        assert not server.asked
    assert "only over https" in result.message


def test_a_server_with_an_unknown_certificate_does_not_get_the_token(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    result = _refused(hosted.place, TOKEN)
    assert "certificate" in result.message.lower()
    assert not hosted.server.shown


@pytest.mark.parametrize("says", ["your credentials were {}", "{}"])
def test_a_repeated_token_is_not_in_the_message(hosted: Hosted, says: str) -> None:
    hosted.server.says = says
    result = _refused(hosted.place, TOKEN)
    assert BASIC not in result.message
    assert TOKEN not in result.message


def _means(token: str | None) -> StorageDependencies:
    def client() -> object:
        raise AssertionError

    return StorageDependencies(client, lambda _: None, time.time, report=lambda _: None, git_token=token)  # type: ignore[arg-type]


def test_a_job_that_asks_for_a_token_is_fetched_with_that_of_the_environment(hosted: Hosted) -> None:
    assert read_code(CodePlan(git=hosted.place), None, _means(f"{TOKEN}\n"))["train.py"].content == b"print(1)\n"


def test_a_job_that_asks_for_none_is_fetched_without(hosted: Hosted) -> None:
    with pytest.raises(StorageError, match="requires a token"):
        read_code(CodePlan(git=replace(hosted.place, username=None)), None, _means(TOKEN))
    assert set(hosted.server.shown) == {None}


def test_a_token_that_is_not_there_is_asked_for(hosted: Hosted) -> None:
    with pytest.raises(StorageError, match="MUSTER_GIT_TOKEN") as caught:
        read_code(CodePlan(git=hosted.place), None, _means(None))
    assert caught.value.reason == "GitTokenMissing"


@pytest.mark.parametrize("written", [b"", b"\n", b"two words", b"two\nlines", b"\xff\xfe", b"x" * 10_000, b"a\0b"])
def test_an_invalid_token_is_refused_and_not_repeated(written: bytes) -> None:
    with pytest.raises(StorageError, match="not a token") as caught:
        parse_token(written, "spec.source.git.secretKeyRef")
    text = written.decode("latin-1").strip()
    assert not text or text not in caught.value.message


def test_a_lines_end_is_no_part_of_a_token() -> None:
    assert parse_token(b"abc\r\n", "x") == "abc"

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.git_server import GitServer, commit, create_repository, git_server, run_git
from muster.render.storage.errors import StorageError
from muster.render.storage.git_folder import GitFolder
from muster.render.storage.source_files import SourceFile
from muster.storage.git import source as git_source
from muster.storage.git.source import fetch_commit


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path) as site:
        yield site


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return create_repository(tmp_path / "code.git")


def _source(server: GitServer, name: str, path: str = "") -> GitFolder:
    return GitFolder(url=f"{server.url}/code.git", commit=name, path=path)


def test_a_commit_becomes_files(server: GitServer, repository: Path) -> None:
    name = commit(repository, {"train.py": "print(1)\n", "lib/data.py": "x = 1\n"})
    assert fetch_commit(_source(server, name)) == {
        "lib/data.py": SourceFile(b"x = 1\n"),
        "train.py": SourceFile(b"print(1)\n"),
    }


def test_an_older_commit_is_found(server: GitServer, repository: Path) -> None:
    first = commit(repository, {"train.py": "1"})
    commit(repository, {"train.py": "2"})
    assert fetch_commit(_source(server, first)) == {"train.py": SourceFile(b"1")}


def test_a_folder_of_it_is_enough(server: GitServer, repository: Path) -> None:
    name = commit(repository, {"a/b/train.py": "1", "a/c": "2", "d": "3"})
    assert fetch_commit(_source(server, name, "a/b")) == {"train.py": SourceFile(b"1")}


def test_what_may_be_executed_stays_so(server: GitServer, repository: Path) -> None:
    (repository / "run.sh").write_text("#!/bin/sh\n")
    (repository / "run.sh").chmod(0o755)
    name = commit(repository, {})
    assert fetch_commit(_source(server, name)) == {"run.sh": SourceFile(b"#!/bin/sh\n", executable=True)}


def test_a_commit_that_is_not_there_is_named(server: GitServer, repository: Path) -> None:
    commit(repository, {"a": ""})
    with pytest.raises(StorageError) as caught:
        fetch_commit(_source(server, "0" * 39 + "1"))
    assert caught.value.reason == "GitCommitNotFound"
    assert "has no commit" in caught.value.message


def test_a_repository_that_is_not_there_is_named(server: GitServer) -> None:
    with pytest.raises(StorageError) as caught:
        fetch_commit(_source(server, "0" * 40))
    assert caught.value.reason == "GitUnreachable"


def test_a_file_is_no_folder(server: GitServer, repository: Path) -> None:
    name = commit(repository, {"a": ""})
    with pytest.raises(StorageError, match='no folder "a"'):
        fetch_commit(_source(server, name, "a"))


def test_symbolic_links_are_refused(server: GitServer, repository: Path) -> None:
    (repository / "out").symlink_to("/etc/passwd")
    name = commit(repository, {})
    with pytest.raises(StorageError, match="symbolic link"):
        fetch_commit(_source(server, name))


def test_submodules_are_refused(server: GitServer, repository: Path, tmp_path: Path) -> None:
    commit(repository, {"a": ""})
    other = create_repository(tmp_path / "other")
    name = commit(other, {"b": ""})
    run_git(repository, "update-index", "--add", "--cacheinfo", f"160000,{name},sub")
    run_git(repository, "commit", "--quiet", "--message", "a submodule")
    with pytest.raises(StorageError, match="submodule"):
        fetch_commit(_source(server, run_git(repository, "rev-parse", "HEAD")))


def test_a_redirect_is_not_followed(server: GitServer, repository: Path) -> None:
    name = commit(repository, {"a": ""})
    server.redirect = "http://169.254.169.254/latest/meta-data/"
    with pytest.raises(StorageError, match="redirects to") as caught:
        fetch_commit(_source(server, name))
    assert caught.value.reason == "GitUnreachable"
    assert len(server.asked) == 1


def test_a_commit_that_is_too_large_is_not_read_to_its_end(
    server: GitServer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "weights").write_bytes(os.urandom(200_000))
    name = commit(repository, {})
    monkeypatch.setattr(git_source, "MAX_PACK_BYTES", 100_000)
    with pytest.raises(StorageError, match="MiB") as caught:
        fetch_commit(_source(server, name))
    assert caught.value.reason == "SourceRefused"


def test_no_git_configuration_is_read(
    server: GitServer, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text('[url "http://127.0.0.1:1/"]\n  insteadOf = http://\n')
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    name = commit(repository, {"a": "1"})
    assert fetch_commit(_source(server, name)) == {"a": SourceFile(b"1")}

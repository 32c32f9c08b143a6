from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import file_paths
from muster.api.s3_uri import S3Uri
from muster.render.storage import source_files
from muster.render.storage.errors import StorageError
from muster.render.storage.source_archive import SourceArchive, make_members, pack_files
from muster.render.storage.source_files import SourceFile, check_files, make_files
from muster.storage import source_folder
from muster.storage.source_folder import read_archive, write_files

_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
_PATHS = (
    st.lists(_NAMES, min_size=1, max_size=3)
    .map("/".join)
    .filter(lambda path: file_paths.find_path_problem(path) is None)
)
_FILES = st.dictionaries(_PATHS, st.builds(SourceFile, st.binary(max_size=64), st.booleans()), min_size=1).filter(
    lambda files: file_paths.find_file_and_folder(files) is None
)


def _packed(files: Mapping[str, SourceFile]) -> tuple[SourceArchive, bytes]:
    file = io.BytesIO()
    return pack_files(make_members(files), file), file.getvalue()


def test_the_bytes_are_these_for_ever() -> None:
    archive, data = _packed({"b.py": SourceFile(b"x = 1\n"), "a/run.sh": SourceFile(b"#!/bin/sh\n", executable=True)})
    assert archive.size == len(data)
    assert archive.checksum == b64encode(hashlib.sha256(data).digest()).decode()
    assert archive.sha256 == hashlib.sha256(gzip.decompress(data)).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(data)) as members:
        result = [(m.name, m.mode, m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members.getmembers()]
    assert result == [("a/run.sh", 0o755, 0, 0, 0, "", ""), ("b.py", 0o644, 0, 0, 0, "", "")]
    assert data[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    tar = gzip.decompress(data)
    assert (len(tar), tar[:8]) == (10_240, b"a/run.sh")


@given(_FILES)
def test_the_same_files_give_the_same_bytes_in_any_order(files: dict[str, SourceFile]) -> None:
    assert _packed(files) == _packed(dict(reversed(files.items())))


@given(_FILES, _FILES)
def test_other_files_give_another_place(files: dict[str, SourceFile], others: dict[str, SourceFile]) -> None:
    folder = S3Uri("code", "team/")
    same = _packed(files)[0].get_uri(folder) == _packed(others)[0].get_uri(folder)
    assert same == (files == others)


@given(_FILES)
def test_what_is_packed_is_read_again(files: dict[str, SourceFile]) -> None:
    assert read_archive(io.BytesIO(_packed(files)[1]), "x") == files


@given(_FILES)
def test_files_are_written_as_they_are(files: dict[str, SourceFile]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "old").mkdir()
        write_files(files, folder)
        written = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        assert {path: place.read_bytes() for path, place in written.items()} == {
            path: file.content for path, file in files.items()
        }
        assert all(bool(written[path].stat().st_mode & 0o100) == file.executable for path, file in files.items())


def test_its_place_tells_its_content() -> None:
    archive, _ = _packed(make_files({"train.py": "print(1)\n"}))
    assert str(archive.get_uri(S3Uri("code", "a/"))) == f"s3://code/a/source/{archive.sha256}/sourcedir.tar.gz"
    assert str(archive.get_uri(S3Uri("code", ""))) == f"s3://code/source/{archive.sha256}/sourcedir.tar.gz"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no file"),
        ({"../a": ""}, "is empty, `.` or `..`"),
        ({"/etc/a": ""}, "not the path of a file below"),
        ({"a//b": ""}, "is empty, `.` or `..`"),
        ({"a\\..\\b": ""}, "a \\"),
        ({"a\nb": ""}, "invisible character"),
        ({"a" * 256: ""}, "255 bytes"),
        ({"/".join(["a" * 200] * 6): ""}, "1024"),
        ({"a": "", "a/b": ""}, "the folder of other files"),
    ],
)
def test_files_that_would_land_elsewhere_are_refused(files: dict[str, str], says: str) -> None:
    with pytest.raises(StorageError) as caught:
        check_files(make_files(files), "spec.source.git")
    assert says in caught.value.message
    assert caught.value.message.startswith("spec.source.git can't be used: ")
    assert caught.value.reason == "SourceRefused"


def test_code_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_BYTES", 10)
    with pytest.raises(StorageError, match=r"spec\.inputs"):
        check_files(make_files({"a": "x" * 6, "b": "x" * 6}), "x")


def _archive(*members: tarfile.TarInfo) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    file.seek(0)
    return file


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, size
    return member


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([_member("../a")], "is empty, `.` or `..`"),
        ([_member("/a")], "not the path of a file below"),
        ([_member("a", tarfile.SYMTYPE, "/etc")], "is a link"),
        ([_member("a", tarfile.SYMTYPE, "/etc"), _member("a/passwd")], "is a link"),
        ([_member("a"), _member("b", tarfile.LNKTYPE, "a")], "is a link"),
        ([_member("a", tarfile.CHRTYPE)], "device"),
        ([_member("a", tarfile.FIFOTYPE)], "device"),
        ([_member("a"), _member("./a")], "twice"),
        ([_member("a"), _member("a/b")], "the folder of other files"),
        ([], "no file"),
    ],
)
def test_archives_with_something_else_in_them_are_refused(members: list[tarfile.TarInfo], says: str) -> None:
    with pytest.raises(StorageError, match=says):
        read_archive(_archive(*members), "spec.source.s3.uri")


def test_an_archive_with_too_many_folders_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_folder, "_MAX_ENTRIES", 3)
    folders = [_member(f"lib/{number}", tarfile.DIRTYPE) for number in range(2)]
    assert read_archive(_archive(*folders, _member("lib/a.py")), "x") == {"lib/a.py": SourceFile(b"")}
    with pytest.raises(StorageError, match="more than 3 entries, counting files and folders"):
        read_archive(_archive(*folders, _member("lib/a.py"), _member("lib/b.py")), "x")


def test_an_archive_of_zeros_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_BYTES", 1000)
    with pytest.raises(StorageError, match="MiB"):
        read_archive(_archive(_member("a", size=1_000_000)), "x")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_an_archive_with_a_name_of_zeros_is_refused_while_it_is_read(
    kind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MAX_BYTES", 1000)
    monkeypatch.setattr(source_folder, "_MAX_HEADER_BYTES", 4096)
    name = tarfile.TarInfo("a")
    name.type, name.size = kind, 2**32
    endless = _Endless(gzip.compress(name.tobuf(tarfile.USTAR_FORMAT) + bytes(2**20)))
    with pytest.raises(StorageError, match="MiB"):
        read_archive(endless, "x")
    assert endless.times_read < 3


class _Endless(io.BytesIO):
    """The same gzip member again and again."""

    times_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        result = super().read(size)
        if result:
            return result
        self.times_read += 1
        self.seek(0)
        return super().read(size)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", _packed(make_files({"a": "b"}))[1][:60]])
def test_half_an_archive_is_refused(data: bytes) -> None:
    with pytest.raises(StorageError, match="not a complete"):
        read_archive(io.BytesIO(data), "x")


def test_an_archive_as_tar_makes_it_is_read() -> None:
    archive = _archive(_member(".", tarfile.DIRTYPE), _member("./lib", tarfile.DIRTYPE), _member("./lib/a.py"))
    assert read_archive(archive, "x") == {"lib/a.py": SourceFile(b"")}

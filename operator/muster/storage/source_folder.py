"""A job's code between archives, files and the folder that a command runs in."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from muster.api import file_paths
from muster.api.document import quoted
from muster.render.storage.source_files import MAX_FILES, SourceFile, SourceFiles, check_bytes, checked, refused

_MAX_HEADS_BYTES = 2 * MAX_FILES * 4096
"""Of what an archive says of its files, long names included."""


def read_archive(archive: BinaryIO, origin: str) -> dict[str, SourceFile]:
    """The files of a .tar.gz archive that somebody else made. Raises `StorageError`. Blocks."""
    files: dict[str, SourceFile] = {}
    size = 0
    try:
        with gzip.GzipFile(fileobj=archive) as unpacked, _open(_Limited(unpacked, origin)) as members:
            for count, member in enumerate(members):
                if count > 2 * MAX_FILES:
                    raise refused(origin, f"it has more than {MAX_FILES} files")
                path = _path(member, origin)
                if member.isdir():
                    continue
                # before it is read: an archive may say that a kilobyte of it is a terabyte of zeros
                size += member.size
                check_bytes(size, origin)
                content = members.extractfile(member)
                if path in files or content is None:
                    raise refused(origin, f"{quoted(path)} is in it twice")
                files[path] = SourceFile(content.read(), executable=bool(member.mode & 0o100))
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise refused(origin, f"it is no whole .tar.gz archive ({error})") from None
    checked(files, origin)
    return files


class _Limited:
    """What an archive unpacks to, as far as it may: tarfile reads a name into memory, and a name may be a terabyte."""

    def __init__(self, unpacked: gzip.GzipFile, origin: str) -> None:
        self._unpacked = unpacked
        self._origin = origin
        self._size = 0

    def read(self, size: int) -> bytes:
        data = self._unpacked.read(size)
        self._size += len(data)
        check_bytes(self._size - _MAX_HEADS_BYTES, self._origin)
        return data


def _open(archive: _Limited) -> tarfile.TarFile:
    # of a stream it only reads
    return tarfile.open(fileobj=cast("BinaryIO", archive), mode="r|")


def _path(member: tarfile.TarInfo, origin: str) -> str:
    path = member.name.removeprefix("./").rstrip("/")
    if member.isdir():
        return path
    if not member.isreg():
        raise refused(origin, f"{quoted(path)} is a link or a device; put the file itself there")
    objection = file_paths.objection(path)
    if objection is not None:
        raise refused(origin, f"{quoted(path)}: {objection}")
    return path


def write_files(files: SourceFiles, folder: Path) -> None:
    """Make `folder` hold these files, which were `checked`, and nothing else. Raises `OSError`. Blocks.

    What was there is taken for an earlier start's; the folder itself stays, for it may be a mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for path, file in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o777 if file.executable else 0o666
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as output:
            output.write(file.content)

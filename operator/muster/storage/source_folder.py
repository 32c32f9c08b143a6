"""Read a job's code from archives, and write it to the command's working directory."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from muster.api import file_paths
from muster.api.document import quote
from muster.render.storage.source_files import (
    MAX_FILES,
    SourceFile,
    SourceFiles,
    check_bytes,
    check_files,
    make_source_refused_error,
)

_MAX_ENTRIES = 2 * MAX_FILES
"""Maximum number of files and folders in an archive."""

_MAX_HEADER_BYTES = _MAX_ENTRIES * 4096
"""Maximum size of an archive's headers, including long names."""


def read_archive(archive: BinaryIO, field: str) -> dict[str, SourceFile]:
    """Read the files of a user's .tar.gz archive. Raises `StorageError`. Blocks the thread."""
    files: dict[str, SourceFile] = {}
    size = 0
    try:
        with gzip.GzipFile(fileobj=archive) as unpacked, _open_tar(_LimitedReader(unpacked, field)) as members:
            for count, member in enumerate(members, start=1):
                if count > _MAX_ENTRIES:
                    raise make_source_refused_error(
                        field, f"the archive has more than {_MAX_ENTRIES} entries, counting files and folders"
                    )
                path = _check_path(member, field)
                if member.isdir():
                    continue
                # Check the size before reading, because a kilobyte of an archive may expand to a terabyte.
                size += member.size
                check_bytes(size, field)
                content = members.extractfile(member)
                if path in files or content is None:
                    raise make_source_refused_error(field, f"{quote(path)} occurs twice in the archive")
                files[path] = SourceFile(content.read(), executable=bool(member.mode & 0o100))
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise make_source_refused_error(field, f"the file is not a complete .tar.gz archive ({error})") from None
    check_files(files, field)
    return files


class _LimitedReader:
    """Limits the unpacked data of an archive, because tarfile reads a name of any length into memory."""

    def __init__(self, unpacked_file: gzip.GzipFile, field: str) -> None:
        self._unpacked_file = unpacked_file
        self._field = field
        self._size = 0

    def read(self, size: int) -> bytes:
        data = self._unpacked_file.read(size)
        self._size += len(data)
        check_bytes(self._size - _MAX_HEADER_BYTES, self._field)
        return data


def _open_tar(archive: _LimitedReader) -> tarfile.TarFile:
    # "r|" reads the archive as a stream, without seeking.
    return tarfile.open(fileobj=cast("BinaryIO", archive), mode="r|")


def _check_path(member: tarfile.TarInfo, field: str) -> str:
    path = member.name.removeprefix("./").rstrip("/")
    if member.isdir():
        return path
    if not member.isreg():
        raise make_source_refused_error(field, f"{quote(path)} is a link or a device; replace it with a regular file")
    problem = file_paths.find_path_problem(path)
    if problem is not None:
        raise make_source_refused_error(field, f"{quote(path)}: {problem}")
    return path


def write_files(files: SourceFiles, folder: Path) -> None:
    """Write files that `check_files` has accepted to `folder`, and remove all other files. Raises `OSError`.

    Blocks the thread. Existing files are from an earlier attempt. The folder itself may be a mount, so it remains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o777 if file.executable else 0o666
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as output:
            output.write(file.content)

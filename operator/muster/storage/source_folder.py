"""A job's code between archives, files and the folder that a command runs in."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO

from muster.api import file_paths
from muster.api.document import quoted
from muster.storage.source_files import MAX_FILES, SourceFile, SourceFiles, check_bytes, checked, refused


def read_archive(archive: BinaryIO, origin: str) -> dict[str, SourceFile]:
    """The files of a .tar.gz archive that somebody else made. Raises `StorageTrouble`. Blocks."""
    files: dict[str, SourceFile] = {}
    size = 0
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as members:
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
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise refused(origin, f"it is no whole .tar.gz archive ({error})") from None
    checked(files, origin)
    return files


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

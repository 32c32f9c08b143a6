"""A job's code as files: which are taken, whatever they come from. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from muster.api import file_paths
from muster.api.document import quoted
from muster.render.storage.errors import SOURCE_REFUSED, StorageError

MAX_FILES = 10_000
MAX_BYTES = 256 * 1024 * 1024
"""Of all files together, unpacked. It is code: data and weights belong in an input."""


@dataclass(frozen=True)
class SourceFile:
    """A file's content, and whether it may be executed."""

    content: bytes
    executable: bool = False


SourceFiles = Mapping[str, SourceFile]
"""Files by their paths below the command's working folder."""


def from_texts(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Files that were written out in a job."""
    return {path: SourceFile(text.encode("utf-8")) for path, text in texts.items()}


def checked(files: SourceFiles, origin: str) -> SourceFiles:
    """The same files. Raises `StorageError` where one may not be made, or all are too much; `origin` is a field."""
    check_paths(files, origin)
    check_bytes(sum(len(file.content) for file in files.values()), origin)
    return files


def check_paths(paths: Collection[str], origin: str) -> None:
    """Raises `StorageError` when there are no files, too many, or one that may not be made."""
    if not paths:
        raise refused(origin, "there is no file in it")
    if len(paths) > MAX_FILES:
        raise refused(origin, f"it has more than {MAX_FILES} files")
    for path in paths:
        objection = file_paths.objection(path)
        if objection is not None:
            raise refused(origin, f"{quoted(path)}: {objection}")
    both = file_paths.file_and_folder(paths)
    if both is not None:
        raise refused(origin, f"{quoted(both)} is a file, and other files lie below it")


def check_bytes(size: int, origin: str) -> None:
    """Raises `StorageError` when code has more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise refused(origin, f"it has more than {MAX_BYTES // 2**20} MiB; data belongs in spec.inputs")


def refused(origin: str, why: str) -> StorageError:
    """The problem with code that isn't taken."""
    return StorageError(SOURCE_REFUSED, f"{origin} can't be used: {why}")

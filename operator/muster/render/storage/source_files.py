"""A job's code as files, and the rules for them, whatever their source is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from muster.api import file_paths
from muster.api.document import quote
from muster.render.storage.errors import SOURCE_REFUSED, StorageError

MAX_FILES = 10_000
MAX_BYTES = 256 * 1024 * 1024
"""Limit of all files together, unpacked. It is for code: data and weights belong in an input."""


@dataclass(frozen=True)
class SourceFile:
    """A file's content, and whether it may be executed."""

    content: bytes
    executable: bool = False


SourceFiles = Mapping[str, SourceFile]
"""Files by their paths below the command's working directory."""


def from_texts(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Files whose content is in the job."""
    return {path: SourceFile(text.encode("utf-8")) for path, text in texts.items()}


def checked(files: SourceFiles, origin: str) -> SourceFiles:
    """Return the same files. Raises `StorageError` for an invalid path or too much data; `origin` is a field."""
    check_paths(files, origin)
    check_bytes(sum(len(file.content) for file in files.values()), origin)
    return files


def check_paths(paths: Collection[str], origin: str) -> None:
    """Raise `StorageError` if there are no files, too many, or an invalid path."""
    if not paths:
        raise refused(origin, "it has no files")
    if len(paths) > MAX_FILES:
        raise refused(origin, f"it has more than {MAX_FILES} files")
    for path in paths:
        objection = file_paths.find_path_problem(path)
        if objection is not None:
            raise refused(origin, f"{quote(path)}: {objection}")
    both = file_paths.find_file_and_folder(paths)
    if both is not None:
        raise refused(origin, f"{quote(both)} is both a file and the folder of other files")


def check_bytes(size: int, origin: str) -> None:
    """Raise `StorageError` if the code has more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise refused(origin, f"it has more than {MAX_BYTES // 2**20} MiB; data belongs in spec.inputs")


def refused(origin: str, why: str) -> StorageError:
    """The problem with rejected code."""
    return StorageError(SOURCE_REFUSED, f"{origin} can't be used: {why}")

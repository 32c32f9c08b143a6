"""The files of a job's code, and the rules for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from muster.api import file_paths
from muster.api.document import quote
from muster.render.storage.errors import SOURCE_REFUSED, StorageError

MAX_FILES = 10_000
MAX_BYTES = 256 * 1024 * 1024
"""The limit for all unpacked files together. Data and weights belong in an input."""


@dataclass(frozen=True)
class SourceFile:
    """A file's content, and whether it may be executed."""

    content: bytes
    executable: bool = False


SourceFiles = Mapping[str, SourceFile]
"""Files by their paths below the command's working directory."""


def make_files(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Return the files whose content is in the job."""
    return {path: SourceFile(text.encode("utf-8")) for path, text in texts.items()}


def check_files(files: SourceFiles, field: str) -> SourceFiles:
    """Return `files`. Raises `StorageError` for an invalid path or too much data.

    `field` is the path of the job's field that has the files, for the error message.
    """
    check_paths(files, field)
    check_bytes(sum(len(file.content) for file in files.values()), field)
    return files


def check_paths(paths: Collection[str], field: str) -> None:
    """Raise `StorageError` if there are no files or too many, or if a path is invalid."""
    if not paths:
        raise make_source_refused_error(field, "it has no files")
    if len(paths) > MAX_FILES:
        raise make_source_refused_error(field, f"it has more than {MAX_FILES} files")
    for path in paths:
        path_problem = file_paths.find_path_problem(path)
        if path_problem is not None:
            raise make_source_refused_error(field, f"{quote(path)}: {path_problem}")
    conflict = file_paths.find_file_and_folder(paths)
    if conflict is not None:
        raise make_source_refused_error(field, f"{quote(conflict)} is both a file and the folder of other files")


def check_bytes(size: int, field: str) -> None:
    """Raise `StorageError` if the code has more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise make_source_refused_error(
            field, f"it has more than {MAX_BYTES // 2**20} MiB; data belongs in spec.inputs"
        )


def make_source_refused_error(field: str, reason: str) -> StorageError:
    """Return the error for code that can't be used."""
    return StorageError(SOURCE_REFUSED, f"{field} can't be used: {reason}")

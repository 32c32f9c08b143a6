"""Convert the script's own code, from its folder, to the job's source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from muster.api.document import JSON
from muster.api.spec.source import MAX_FILE_CHARS, MAX_FILES
from muster.importers.sagemaker.translate.entry import Folder

MAX_INLINE_CHARS = 128 * 1024
"""Half of a whole spec's limit (api/validation/validate.py): people should still be able to read the job's file."""

_LEFT_OUT = frozenset({".git", ".ipynb_checkpoints", "__pycache__", ".DS_Store"})
"""Files of tools, which no training script reads. A warning names those that exist."""

_REMEDY = (
    "name the code's location instead: --source https://host/owner/name.git@COMMIT for a repository, with //FOLDER "
    "after it for one of its folders, or --source s3://bucket/key.tar.gz for an archive"
)


class NotInline(Exception):
    """The job's file can't contain the code; the message says why, and what to do."""


@dataclass(frozen=True)
class InlineCode:
    """The files' contents by their path in the archive, and the names of files that are left out."""

    files: Mapping[str, JSON]
    left_out: Sequence[str]


def inline(code: Folder, working_folder: Path, notebook_files: Mapping[str, str]) -> InlineCode:
    """Read the files below `working_folder`; `notebook_files` are files that a notebook would write first.

    Raises `NotInline`.
    """
    left_out: list[str] = []
    files: dict[str, JSON] = {}
    for name, path in _files(code, working_folder, notebook_files, left_out):
        files[name] = _text(path, notebook_files, working_folder)
    if len(files) > MAX_FILES or sum(len(str(text)) for text in files.values()) > MAX_INLINE_CHARS:
        raise NotInline(f"{len(files)} files are more than a job's file can hold; {_REMEDY}")
    return InlineCode(dict(sorted(files.items())), sorted(set(left_out)))


def _files(
    code: Folder, working_folder: Path, files: Mapping[str, str], left_out: list[str]
) -> Iterator[tuple[str, Path]]:
    """Names in the archive and where their files are (sagemaker 2.257.7, fw_utils.tar_and_upload_dir)."""
    made = {_absolute(working_folder, name) for name in files}
    if code.folder is None:
        yield Path(code.script).name, _absolute(working_folder, code.script)
    else:
        folder = _absolute(working_folder, code.folder)
        if not folder.is_dir() and not any(path.is_relative_to(folder) for path in made):
            raise NotInline(
                f"there is no folder {code.folder} here; run `muster import` where the script runs, or {_REMEDY}"
            )
        yield from ((name, path) for name, path in _below(folder, left_out) if not _ignored(name, code.ignored))
        yield from ((str(path.relative_to(folder)), path) for path in made if path.is_relative_to(folder))
    for name in code.beside:
        path = _absolute(working_folder, name)
        if path.is_dir():
            yield from ((f"{path.name}/{below}", file) for below, file in _below(path, left_out))
        else:
            yield path.name, path


def _ignored(name: str, patterns: Sequence[str]) -> bool:
    """Match as shutil.ignore_patterns, which SDK 3 uses: any part of the path may match."""
    return any(fnmatch(part, pattern) for part in name.split("/") for pattern in patterns)


def _below(folder: Path, left_out: list[str]) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        left_out += [name for name in (*folders, *names) if name in _LEFT_OUT]
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(set(names) - _LEFT_OUT):
            path = Path(parent, name)
            yield path.relative_to(folder).as_posix(), path


def _text(path: Path, files: Mapping[str, str], working_folder: Path) -> str:
    for name, text in files.items():
        if _absolute(working_folder, name) == path:
            return text
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NotInline(f"{path.name} isn't text; {_REMEDY}") from None
    except OSError as problem:
        raise NotInline(
            f"{path}: {problem.strerror}; run `muster import` where the script runs, or {_REMEDY}"
        ) from None
    if len(text) > MAX_FILE_CHARS:
        raise NotInline(f"{path.name} has {len(text)} characters, more than a job's file can hold; {_REMEDY}")
    return text


def _absolute(working_folder: Path, name: str) -> Path:
    return Path(os.path.normpath(working_folder / name))

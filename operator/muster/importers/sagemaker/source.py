"""Convert the code in the script's folder to the job's source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from muster.api.document import JSON
from muster.api.spec.source import MAX_FILE_CHARS, MAX_FILES
from muster.importers.sagemaker.translate.entry_point import LocalCode

MAX_INLINE_CHARS = 128 * 1024
"""Half of the maximum size of a spec, so that the job's file remains readable."""

_OMITTED = frozenset({".git", ".ipynb_checkpoints", "__pycache__", ".DS_Store"})
"""Files of tools, which training scripts don't read. muster omits these files with a warning."""

_REMEDY = (
    "set the code's location: --source https://host/owner/name.git@COMMIT for a repository, with //FOLDER "
    "after it for one of its folders, or --source s3://bucket/key.tar.gz for an archive"
)


class CodeNotInline(Exception):
    """The job's file can't contain the code. The message has the reason and the remedy."""


@dataclass(frozen=True)
class InlineCode:
    """The contents of the files, by their paths in the archive, and the names of omitted files."""

    files: Mapping[str, JSON]
    omitted_files: Sequence[str]


def read_inline_code(code: LocalCode, working_folder: Path, notebook_files: Mapping[str, str]) -> InlineCode:
    """Read the code's files. `notebook_files` are files that the notebook would write to `working_folder`.

    Raises `CodeNotInline` if the job's file can't contain them.
    """
    omitted_files: list[str] = []
    files: dict[str, JSON] = {}
    for name, path in _find_files(code, working_folder, notebook_files, omitted_files):
        files[name] = _read_text(path, notebook_files, working_folder)
    if len(files) > MAX_FILES or sum(len(str(text)) for text in files.values()) > MAX_INLINE_CHARS:
        raise CodeNotInline(f"{len(files)} files are too much for a job's file; {_REMEDY}")
    return InlineCode(dict(sorted(files.items())), sorted(set(omitted_files)))


def _find_files(
    code: LocalCode, working_folder: Path, files: Mapping[str, str], omitted_files: list[str]
) -> Iterator[tuple[str, Path]]:
    """Yield the paths in the archive and the files, as the SDK packs them (fw_utils.tar_and_upload_dir, 2.257.7)."""
    notebook_paths = {_resolve_path(working_folder, name) for name in files}
    if code.folder is None:
        yield Path(code.script).name, _resolve_path(working_folder, code.script)
    else:
        folder = _resolve_path(working_folder, code.folder)
        if not folder.is_dir() and not any(path.is_relative_to(folder) for path in notebook_paths):
            raise CodeNotInline(
                f"the folder {code.folder} does not exist; run `muster import` where the script runs, or {_REMEDY}"
            )
        yield from (
            (name, path) for name, path in _walk(folder, omitted_files) if not _is_ignored(name, code.ignore_patterns)
        )
        yield from ((str(path.relative_to(folder)), path) for path in notebook_paths if path.is_relative_to(folder))
    for name in code.dependencies:
        path = _resolve_path(working_folder, name)
        if path.is_dir():
            yield from ((f"{path.name}/{below}", file) for below, file in _walk(path, omitted_files))
        else:
            yield path.name, path


def _is_ignored(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name in the path matches a pattern, as with shutil.ignore_patterns, which SDK 3 uses."""
    return any(fnmatch(part, pattern) for part in name.split("/") for pattern in patterns)


def _walk(folder: Path, omitted_files: list[str]) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        omitted_files += [name for name in (*folders, *names) if name in _OMITTED]
        folders[:] = sorted(name for name in folders if name not in _OMITTED)
        for name in sorted(set(names) - _OMITTED):
            path = Path(parent, name)
            yield path.relative_to(folder).as_posix(), path


def _read_text(path: Path, files: Mapping[str, str], working_folder: Path) -> str:
    for name, text in files.items():
        if _resolve_path(working_folder, name) == path:
            return text
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CodeNotInline(f"{path.name} isn't text; {_REMEDY}") from None
    except OSError as problem:
        raise CodeNotInline(
            f"{path}: {problem.strerror}; run `muster import` where the script runs, or {_REMEDY}"
        ) from None
    if len(text) > MAX_FILE_CHARS:
        raise CodeNotInline(f"{path.name} has {len(text)} characters, which is too much for a job's file; {_REMEDY}")
    return text


def _resolve_path(working_folder: Path, name: str) -> Path:
    return Path(os.path.normpath(working_folder / name))

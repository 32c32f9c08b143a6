"""Select and pack the files of a folder that a command sends to a job, and list the files that it skips."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.api.document import quote
from muster.api.file_paths import find_path_problem
from muster.api.plurals import pluralize
from muster.cli.errors import BadInput
from muster.render.storage.source_archive import make_members, pack_files
from muster.render.storage.source_files import SourceFile
from muster_worker.contract.source import MAX_SOURCE_BYTES, MAX_SOURCE_FILES, MAX_UNPACKED_SOURCE_BYTES
from muster_worker.fork_server.command import PythonCommand, parse_command

_IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "venv"})
"""Outside of git, muster skips these folders and all hidden files and folders."""

MAX_LISTED_FILES = 20
"""The maximum number of skipped files that a command lists."""

_LARGEST = 3
"""The number of large files that the error about the size names."""


@dataclass(frozen=True)
class PackedSource:
    """The packed files, with their paths. `skipped_files` has a sentence for each file that muster skipped."""

    archive: bytes
    sha256: str
    paths: frozenset[str]
    skipped_files: tuple[str, ...] = ()


def pack_source(path: Path) -> PackedSource:
    """Pack a folder, or a single file. In a git repository, skip files that git ignores. Raises `BadInput`."""
    skipped_files: tuple[str, ...] = ()
    if path.is_file():
        files = {path.name: _read_file(path)}
    elif path.is_dir():
        files, skipped_files = _read_folder(path)
    else:
        raise BadInput(f"--source {path}: there is no such file or folder")
    stream = io.BytesIO()
    pack_files(make_members(files), stream)
    archive = stream.getvalue()
    if len(archive) > MAX_SOURCE_BYTES:
        raise BadInput(_describe_size(path, files, len(archive)))
    return PackedSource(archive, hashlib.sha256(archive).hexdigest(), frozenset(files), skipped_files)


def list_skipped_files(source: PackedSource) -> list[str]:
    """Return sentences about the files that are left out."""
    more = len(source.skipped_files) - MAX_LISTED_FILES
    note = [f"{pluralize(more, 'more file')} left out"] if more > 0 else []
    return [*source.skipped_files[:MAX_LISTED_FILES], *note]


def check_script(path: Path, source: PackedSource, command: Sequence[str]) -> None:
    """Raise `BadInput` if the job's command runs a Python script that is not in the source, or has a syntax error."""
    parsed = parse_command(command)
    if not isinstance(parsed, PythonCommand) or not parsed.script:
        return
    parts = os.path.normpath(parsed.script).strip("/").split("/")
    # The script may be /app/train.py, and the source may be any folder above it.
    starts = range(len(parts)) if parsed.script.startswith("/") else (0,)
    script = next((name for start in starts if (name := "/".join(parts[start:])) in source.paths), None)
    if script is None:
        raise BadInput(
            f"--source {path} has no {'/'.join(parts)}, which the job's command runs; use the folder that contains "
            "all of the job's code"
        )
    _check_syntax(path if path.is_file() else path / script)


def _check_syntax(script: Path) -> None:
    """Raise `BadInput` for a syntax error, which would end the job and its pods."""
    try:
        compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadInput(f"--source: {script} can't be compiled: {error}") from None
    except OSError as error:
        raise BadInput(f"--source: {script} can't be read: {error.strerror}") from None


def _read_folder(folder: Path) -> tuple[dict[str, SourceFile], tuple[str, ...]]:
    files: dict[str, SourceFile] = {}
    skipped_files = []
    size = 0
    listed = _list_git_files(folder)
    for name in sorted(_list_files(folder) if listed is None else listed):
        reason = _find_file_problem(folder, name)
        if reason is not None:
            skipped_files.append(f"{quote(name)} is left out: {reason}")
            continue
        files[name] = _read_file(folder / name)
        size += len(files[name].content)
        if len(files) > MAX_SOURCE_FILES or size > MAX_UNPACKED_SOURCE_BYTES:
            raise BadInput(_describe_size(folder, files, size))
    if not files:
        reason = "has no files" if listed is None or skipped_files else "has no files that git does not ignore"
        raise BadInput(f"--source {folder}: the folder {reason}")
    return files, tuple(skipped_files)


def _list_git_files(folder: Path) -> list[str] | None:
    """Return the files that git tracks or would add; None outside a repository, or without git."""
    command = ["git", "-C", str(folder), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        completed_process = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return None
    names = {os.fsdecode(name) for name in completed_process.stdout.split(b"\0") if name}
    # git still lists a deleted file until the deletion is staged.
    return [name for name in names if os.path.lexists(folder / name)] if completed_process.returncode == 0 else None


def _list_files(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if name not in _IGNORED_FOLDERS and not name.startswith(".")]
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        # A hidden file such as .env may contain secrets.
        for name in (*links, *(name for name in names if not name.startswith("."))):
            yield str((Path(parent) / name).relative_to(folder))


def _refuse_folder(error: OSError) -> None:
    raise BadInput(f"--source: {error.filename} can't be read: {error.strerror}")


def _find_file_problem(folder: Path, name: str) -> str | None:
    """Return why muster can't pack a file; None if it can."""
    path = folder / name
    # Path.resolve would raise an error for a cycle of links.
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        return "it is a link to something outside the folder"
    if not path.is_file():
        return "it is not a regular file"
    return find_path_problem(name)


def _read_file(path: Path) -> SourceFile:
    # Of a file above the limit, read only enough to detect it.
    try:
        with path.open("rb") as file:
            return SourceFile(file.read(MAX_UNPACKED_SOURCE_BYTES + 1), executable=os.access(path, os.X_OK))
    except OSError as error:
        raise BadInput(f"--source: {path} can't be read: {error.strerror}") from None


def _describe_size(path: Path, files: Mapping[str, SourceFile], size: int) -> str:
    largest = sorted(files, key=lambda name: -len(files[name].content))[:_LARGEST]
    named = ", ".join(f"{name} ({len(files[name].content) // 1024} KiB)" for name in largest)
    return (
        f"--source {path} is too large ({pluralize(len(files), 'file')}, {size // 1024} KiB): a source has at most "
        f"{MAX_SOURCE_FILES} files with {MAX_UNPACKED_SOURCE_BYTES // 2**20} MiB, and {MAX_SOURCE_BYTES // 1024} KiB "
        f"when packed. The largest: {named}. Keep data out of the folder, or use spec.source.git or s3 "
        "(docs/source.md)"
    )

"""Unpack the code that `muster rerun` sends into a new folder, which becomes the ranks' working directory.

The job's own folder remains unchanged. So it may be read-only, and the job can return to it. The archive comes from a
user, so the agent does not trust its content.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zlib
from dataclasses import replace
from typing import BinaryIO, Mapping, Optional, Sequence, Tuple, cast

from muster_worker.agent.fork_server import update_fork_server
from muster_worker.agent.log import Log
from muster_worker.contract.schema import AgentProblem
from muster_worker.contract.source import MAX_SOURCE_FILES, MAX_UNPACKED_SOURCE_BYTES, EditedSource
from muster_worker.launchers.environment import NodeContext

_MAX_HEADER_BYTES = MAX_SOURCE_FILES * 4096
"""Maximum size of an archive's headers, with long names."""

_MAX_PATH_BYTES = 1024
_CHUNK_BYTES = 64 * 1024
_REGULAR_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)


class SourceUnusable(OSError):
    """The source can't be unpacked. The text is the reason."""


def describe_problem(error: OSError) -> AgentProblem:
    """Return the problem to report if this error prevents the start of the ranks."""
    if isinstance(error, SourceUnusable):
        return AgentProblem("SourceUnusable", f"the edited code of `muster rerun` can't be used: {error}")
    return AgentProblem("RanksNotStarted", f"the ranks can't be started: {error}")


def change_source_folder(
    spec_context: NodeContext,
    context: NodeContext,
    source: Optional[EditedSource],
    base_environment: Mapping[str, str],
    log: Log,
) -> NodeContext:
    """Change to the folder with the code of the next attempt. Returns `context` with this folder.

    `spec_context` has the folder and the command of the job's spec. `context` has the folder and the command of the
    last attempt. If `source` is None, the next attempt runs the code of the spec. The ranks inherit the agent's working
    directory. Raises `SourceUnusable` and `OSError`.
    """
    folder, command = spec_context.host.directory, spec_context.plan.command
    if source is not None:
        folder = unpack(source, os.path.join(spec_context.run_dir, "source"))
        command = move_command(command, folder)
    if folder == context.host.directory:
        return context
    log.print_line(f"the ranks run in {folder}")
    os.chdir(folder)
    host, plan = replace(context.host, directory=folder), replace(context.plan, command=command)
    return update_fork_server(replace(context, host=host, plan=plan), base_environment, log)


def unpack(source: EditedSource, parent: str) -> str:
    """Unpack `source` into a new folder below `parent`, and remove the folders of other sources. Returns the folder.

    If the same source was unpacked before, use its folder again, with the files that ranks have written there. Raises
    `SourceUnusable`.
    """
    try:
        archive = base64.b64decode(source.archive.encode("ascii"), validate=True)
    except ValueError:
        raise SourceUnusable("it is not in Base64") from None
    digest = hashlib.sha256(archive).hexdigest()
    if digest != source.sha256:
        raise SourceUnusable(f"its SHA-256 is {digest}, but {source.sha256[:64]} is expected")
    folder = os.path.join(parent, digest[:16])
    if os.path.isdir(folder):
        return folder
    temporary = folder + ".new"
    try:
        os.makedirs(temporary)
        _write_files(archive, temporary)
        os.rename(temporary, folder)
    except SourceUnusable:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    # tarfile raises RecursionError for many extended headers in a row.
    except (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError, RecursionError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise SourceUnusable(f"it can't be unpacked: {error}") from None
    for name in os.listdir(parent):
        if name != os.path.basename(folder):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    return folder


def move_command(command: Sequence[str], folder: str) -> Tuple[str, ...]:
    """Replace the first absolute path in a command that ends with the path of a source file.

    For example, replace /app/train.py by FOLDER/train.py. If several files match, choose the longest path.
    """
    words = list(command)
    for index, word in enumerate(words):
        if not word.startswith("/"):
            continue
        parts = os.path.normpath(word).strip("/").split("/")
        candidates = (os.path.join(folder, *parts[start:]) for start in range(len(parts)))
        moved_path = next((path for path in candidates if os.path.isfile(path)), None)
        if moved_path is not None:
            words[index] = moved_path
            break
    return tuple(words)


def _write_files(archive: bytes, folder: str) -> None:
    """Raises `SourceUnusable`, and the errors of damaged archives and of the file system."""
    size = 0
    with gzip.GzipFile(fileobj=io.BytesIO(archive)) as gzip_file, _open_tar(gzip_file) as members:
        for count, member in enumerate(members, 1):
            if count > MAX_SOURCE_FILES:
                raise SourceUnusable(f"it has more than {MAX_SOURCE_FILES} files")
            # A sparse file of a few bytes may unpack to terabytes.
            if member.type not in _REGULAR_FILE_TYPES or member.issparse():
                raise SourceUnusable(f"{member.name[:200]!r} is not a regular file")
            _check_path(member.name)
            content = cast(BinaryIO, members.extractfile(member))
            size += _write_file(os.path.join(folder, member.name), content, 0o777 if member.mode & 0o100 else 0o666)
    if size == 0:
        raise SourceUnusable("it has no files, or only empty ones")


def _write_file(path: str, content: BinaryIO, mode: int) -> int:
    """Write one file of the archive into the new folder. Returns its size."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    size = 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
        for chunk in iter(lambda: content.read(_CHUNK_BYTES), b""):
            file.write(chunk)
            size += len(chunk)
    return size


def _check_path(path: str) -> None:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path or len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise SourceUnusable(f"{path[:200]!r} is not the path of a file below a folder")


class _LimitedReader:
    """Limits the unpacked bytes, because a kilobyte of an archive may unpack to a gigabyte."""

    def __init__(self, gzip_file: gzip.GzipFile) -> None:
        self._gzip_file = gzip_file
        self._remaining_bytes = MAX_UNPACKED_SOURCE_BYTES + _MAX_HEADER_BYTES

    def read(self, size: int) -> bytes:
        data = self._gzip_file.read(min(size, _CHUNK_BYTES))
        self._remaining_bytes -= len(data)
        if self._remaining_bytes < 0:
            raise SourceUnusable(f"it unpacks to more than {MAX_UNPACKED_SOURCE_BYTES // 2**20} MiB")
        return data


def _open_tar(gzip_file: gzip.GzipFile) -> tarfile.TarFile:
    # "r|" reads a stream, without seeking.
    return tarfile.open(fileobj=cast(BinaryIO, _LimitedReader(gzip_file)), mode="r|")

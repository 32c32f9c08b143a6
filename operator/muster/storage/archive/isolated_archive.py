"""Archive a commit in a separate process, because the operator must not parse a user's repository."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile
from typing import BinaryIO

from muster.render.storage.errors import GIT_TOO_SLOW, StorageError
from muster.render.storage.git_folder import GIT_FIELD
from muster.render.storage.source_archive import SourceArchive
from muster.render.storage.source_files import make_source_refused_error
from muster.storage.archive.messages import ArchiveRequest, ArchiveResponse, decode_response, encode_request

_MODULE = "muster.storage.archive.process"

_MAX_RESPONSE_BYTES = 2**16

_INHERITED_VARIABLES = (
    *("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ"),
)
"""The variables that the process inherits, which contain proxies and certificates, but no credentials."""

_log = logging.getLogger(__name__)
_logged_problems: set[str] = set()


async def make_archive(request: ArchiveRequest, archive_file: BinaryIO) -> SourceArchive:
    """Write the archive of a commit to `archive_file`. Raises `StorageError`.

    Cancellation kills the process and its children.
    """
    with TemporaryFile() as pack_file, TemporaryFile() as objects_file:
        process = await _start_process(pack_file, objects_file, archive_file)
        try:
            async with asyncio.timeout(request.limits.seconds):
                text = await _read_response(process, encode_request(request))
                status = await process.wait()
        except TimeoutError:
            raise _make_timeout_error(request) from None
        finally:
            await _kill(process)
    return _parse_response(request, text, status)


async def _start_process(*files: BinaryIO) -> asyncio.subprocess.Process:
    # The files have no names, so the kernel removes them when the last process has closed them.
    descriptors = tuple(file.fileno() for file in files)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-B", "-m", _MODULE, str(os.getpid()), *map(str, descriptors)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd="/",
        env=_make_environment(os.environ),
        pass_fds=descriptors,
        start_new_session=True,
    )


def _make_environment(variables: Mapping[str, str]) -> dict[str, str]:
    # Each arena of glibc takes 64 MiB of address space, so allow only one arena.
    return {**{name: variables[name] for name in _INHERITED_VARIABLES if name in variables}, "MALLOC_ARENA_MAX": "1"}


async def _read_response(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise TypeError("the process has no pipes")
    with suppress(ConnectionError):
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()
    text = b""
    # A compromised process may send unlimited data.
    while len(text) <= _MAX_RESPONSE_BYTES and (chunk := await process.stdout.read(_MAX_RESPONSE_BYTES)):
        text += chunk
    return text


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _parse_response(request: ArchiveRequest, text: bytes, status: int) -> SourceArchive:
    try:
        response = decode_response(text)
    except ValueError:
        raise _make_killed_error(request, status) from None
    _log_problems_once(response)
    if response.archive is not None and status == 0:
        return response.archive
    raise response.problem or _make_killed_error(request, status)


def _log_problems_once(response: ArchiveResponse) -> None:
    """Log each problem for the administrator only once."""
    if response.traceback is not None:
        _log.error("muster failed unexpectedly while it read a commit: %s", response.traceback)
    if not response.confined and "landlock" not in _logged_problems:
        _logged_problems.add("landlock")
        _log.warning(
            "the process that reads commits can open the operator's files, including its tokens: "
            "this kernel has no Landlock (docs/sagemaker-iam.md)"
        )


def _make_timeout_error(request: ArchiveRequest) -> StorageError:
    minutes = f"{request.limits.seconds / 60:.3g} minutes"
    return StorageError(GIT_TOO_SLOW, f"{GIT_FIELD}: fetching and archiving the commit took more than {minutes}")


def _make_killed_error(request: ArchiveRequest, status: int) -> StorageError:
    if status == -signal.SIGXCPU:
        return make_source_refused_error(
            GIT_FIELD, f"reading the commit takes more than {request.limits.cpu_seconds} s of processor time"
        )
    cause = signal.Signals(-status).name if -status in set(signal.Signals) else f"exit code {status}"
    return make_source_refused_error(GIT_FIELD, f"the process that read the commit ended with {cause}")

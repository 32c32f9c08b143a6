"""Archive a commit in a separate process: the operator itself never parses a user's repository."""

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
from muster.render.storage.git_place import ORIGIN
from muster.render.storage.source_archive import SourceArchive
from muster.render.storage.source_files import refused
from muster.storage.archive.order import ArchiveAnswer, ArchiveOrder, answer_from_json, order_to_json

_MODULE = "muster.storage.archive.process"

_MAX_ANSWER_BYTES = 2**16

_KEPT_VARIABLES = (
    *("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ"),
)
"""Proxies and certificates. No variable with credentials for AWS or Kubernetes."""

_log = logging.getLogger(__name__)
_logged: set[str] = set()


async def make_archive(order: ArchiveOrder, into: BinaryIO) -> SourceArchive:
    """Write the archive of a commit to the file `into`. Raises `StorageError`.

    Cancelling this kills the process and its children.
    """
    with TemporaryFile() as sent, TemporaryFile() as objects:
        process = await _start(sent, objects, into)
        try:
            async with asyncio.timeout(order.limits.seconds):
                text = await _answered(process, order_to_json(order))
                status = await process.wait()
        except TimeoutError:
            raise _late(order) from None
        finally:
            await _end(process)
    return _archive(order, text, status)


async def _start(*files: BinaryIO) -> asyncio.subprocess.Process:
    # unnamed files: the kernel removes them when the last process closes them, however it ends
    descriptors = tuple(file.fileno() for file in files)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-B", "-m", _MODULE, str(os.getpid()), *map(str, descriptors)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd="/",
        env=_environment(os.environ),
        pass_fds=descriptors,
        start_new_session=True,
    )


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    # one glibc arena: each takes 64 MiB of address space
    return {**{name: own[name] for name in _KEPT_VARIABLES if name in own}, "MALLOC_ARENA_MAX": "1"}


async def _answered(process: asyncio.subprocess.Process, order: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise TypeError("the process has no pipes")
    with suppress(ConnectionError):
        process.stdin.write(order)
        await process.stdin.drain()
    process.stdin.close()
    text = b""
    # a compromised process may send anything, without an end
    while len(text) <= _MAX_ANSWER_BYTES and (piece := await process.stdout.read(_MAX_ANSWER_BYTES)):
        text += piece
    return text


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _archive(order: ArchiveOrder, text: bytes, status: int) -> SourceArchive:
    try:
        answer = answer_from_json(text)
    except ValueError:
        raise _killed(order, status) from None
    _log_findings(answer)
    if answer.archive is not None and status == 0:
        return answer.archive
    raise answer.problem or _killed(order, status)


def _log_findings(answer: ArchiveAnswer) -> None:
    """Log what the administrator needs to know, each only once."""
    if answer.bug is not None:
        _log.error("muster failed unexpectedly while it read a commit: %s", answer.bug)
    if not answer.confined and "landlock" not in _logged:
        _logged.add("landlock")
        _log.warning(
            "the process that reads commits can open the operator's own files, including its tokens: "
            "this kernel has no Landlock (docs/sagemaker-iam.md)"
        )


def _late(order: ArchiveOrder) -> StorageError:
    minutes = f"{order.limits.seconds / 60:.3g} minutes"
    return StorageError(GIT_TOO_SLOW, f"{ORIGIN}: fetching and archiving the commit took more than {minutes}")


def _killed(order: ArchiveOrder, status: int) -> StorageError:
    if status == -signal.SIGXCPU:
        return refused(ORIGIN, f"reading it takes more than {order.limits.cpu_seconds} s of processor time")
    how = signal.Signals(-status).name if -status in set(signal.Signals) else f"exit code {status}"
    return refused(ORIGIN, f"the process that read it ended with {how}")

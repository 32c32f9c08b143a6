"""Writes stack dumps of all threads to a file when the agent sends a signal.

faulthandler handles the signal in C, so it works while Python waits in a collective or for a lock.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module of `signal`
import faulthandler
import fcntl
import os

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from muster_worker.rank.progress_file import Writer

SIGNAL: int = _signal.SIGRTMIN + 5
"""A real-time signal that no known library uses. The C library and debuggers use the lowest real-time signals."""

SUFFIX = ".stacks"
"""Suffix after the path of the rank's progress file."""

LOWEST_FD = 200
"""The lowest descriptor for the file. Programs may close and reuse lower descriptors."""


def install(writer: Writer, path: str) -> None:
    """Write stack dumps to `path` on `SIGNAL`, unless the program sets its own handler. Raises `OSError`."""
    low_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fd = fcntl.fcntl(low_fd, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
    finally:
        os.close(low_fd)
    faulthandler.register(SIGNAL, file=fd, all_threads=True, chain=False)
    writer.words[layout.WORD_STACKS_FD] = fd
    writer.set_flag(layout.FLAG_STACKS)
    _watch_user_handlers(writer)


def _watch_user_handlers(writer: Writer) -> None:
    # `signal.signal` calls `_signal.signal`, so the replacement sees all handlers of the program.
    set_handler = _signal.signal

    def signal(signalnum: int, handler: Any, /) -> Any:
        previous_handler = set_handler(signalnum, handler)
        if signalnum == SIGNAL:
            writer.clear_flag(layout.FLAG_STACKS)
        return previous_handler

    _signal.signal = signal

"""Lets the agent ask a rank where it is: on a signal the process writes the stack of every thread into a file.

The signal is handled in C, so it works while Python waits in a collective or in a lock.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of
import faulthandler
import fcntl
import os

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from muster_worker.rank.progress_file import Writer

SIGNAL: int = _signal.SIGRTMIN + 5
"""A real-time signal: no library is known to use it. The first few belong to the C library and its debuggers."""

SUFFIX = ".stacks"
"""Added to the path of the rank's progress file."""

LOWEST_FD = 200
"""Programs that close what they don't know, and reuse the numbers, start from below."""


def install(writer: Writer, path: str) -> None:
    """Write stacks to `path` on `SIGNAL`, until the program takes that signal for itself. Raises `OSError`."""
    low = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
    finally:
        os.close(low)
    faulthandler.register(SIGNAL, file=fd, all_threads=True, chain=False)
    writer.words[layout.WORD_STACKS_FD] = fd
    writer.set_flag(layout.FLAG_STACKS)
    _yield_to_user(writer)


def _yield_to_user(writer: Writer) -> None:
    # `signal` builds its functions on those of `_signal` when they are called, so this sees the program's own handlers
    set_handler = _signal.signal

    def signal(signalnum: int, handler: Any, /) -> Any:
        before = set_handler(signalnum, handler)
        if signalnum == SIGNAL:
            writer.clear_flag(layout.FLAG_STACKS)
        return before

    _signal.signal = signal

"""Ctrl-C and SIGTERM interrupt a command, even if Python loses the exception: it ignores those raised in `__del__`."""

import signal
import threading
from types import FrameType
from typing import NoReturn

_requested = threading.Event()


def handle_signals() -> None:
    """Raise KeyboardInterrupt in the main thread on SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def check() -> None:
    """Raise KeyboardInterrupt if a signal has arrived. Call this wherever the main thread polls."""
    if _requested.is_set():
        raise KeyboardInterrupt


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    _requested.set()
    raise KeyboardInterrupt

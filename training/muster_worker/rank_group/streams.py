"""One output of one process: reads it without blocking, logs complete lines, and stores the last lines."""

from __future__ import annotations

import fcntl
import os
import selectors
import time
from typing import Dict, Optional

from muster_worker.agent.log import Log
from muster_worker.agent.state import RaisedError
from muster_worker.contract.error_text import MARKS, ErrorReader
from muster_worker.rank_group.lines import LineSplitter, add_prefix
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.tail import Tail

_F_SETPIPE_SZ = 1031  # linux/fcntl.h
_F_GETPIPE_SZ = 1032
_PIPE_BYTES = 256 * 1024
"""Pipe size for bursts of output. If the kernel refuses it (it limits large pipes per user), output is only slower."""


class Stream:
    """The read end of a process' standard output or standard error. It owns the descriptor."""

    def __init__(self, descriptor: int, prefix: str, log: Log, metrics: MetricReader) -> None:
        os.set_blocking(descriptor, False)
        try:
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # not a pipe, or too many large pipes of this user
        self.descriptor = descriptor
        self.is_closed = False
        self.tail = Tail()
        self.prefix = prefix
        self._log = log
        self._metrics = metrics
        self._splitter = LineSplitter()
        self._error_reader = ErrorReader()
        self.error: Optional[RaisedError] = None  # the last error in the output
        self.has_aborted = False  # it ended the program

    def read(self) -> Dict[str, float]:
        """Read the available data once. Returns the metrics in it."""
        try:
            data = os.read(self.descriptor, _PIPE_BYTES)
        except (BlockingIOError, InterruptedError):
            return {}
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
        self.tail.feed(data)
        metrics = self._log_lines(self._splitter.feed(data) if data else self._splitter.end())
        # A script may print its loss only in a progress bar, whose line ends only at the end of the epoch.
        metrics.update(self._metrics.read(self._splitter.overwritten))
        return metrics

    def drain(self) -> Dict[str, float]:
        """Read the remaining output of an ended process, at most the pipe's capacity. Returns the metrics in it."""
        metrics: Dict[str, float] = {}
        remaining = _read_capacity(self.descriptor)
        while remaining > 0 and not self.is_closed:
            previous_total = self.tail.total
            metrics.update(self.read())
            count = self.tail.total - previous_total
            if count == 0:
                break
            remaining -= count
        return metrics

    def close(self) -> None:
        """Log an incomplete last line and close the descriptor."""
        self.is_closed = True
        self._log_lines(self._splitter.end())
        os.close(self.descriptor)

    def release(self, selector: selectors.BaseSelector) -> None:
        """Unregister the stream from `selector` and close it."""
        try:
            selector.unregister(self.descriptor)
        except KeyError:
            pass  # never registered: the hello was rejected
        self.close()

    def _log_lines(self, lines: bytes) -> Dict[str, float]:
        self._log.write(add_prefix(lines, f"[{self.prefix}] ".encode()))
        if self._error_reader.is_waiting or any(mark in lines for mark in MARKS):
            self._read_errors(lines)
        return self._metrics.read(lines)

    def _read_errors(self, lines: bytes) -> None:
        has_changed = [self._error_reader.feed(line) for line in lines.decode("utf-8").splitlines()]
        if any(has_changed):
            self.error = RaisedError(self._error_reader.error, time.monotonic(), is_printed=True)
            self.has_aborted = self._error_reader.is_abort


def _read_capacity(descriptor: int) -> int:
    try:
        return fcntl.fcntl(descriptor, _F_GETPIPE_SZ)
    except OSError:
        return _PIPE_BYTES

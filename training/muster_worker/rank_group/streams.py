"""One output of one process: reads it without blocking, logs complete lines, and stores the last ones."""

from __future__ import annotations

import fcntl
import os
import selectors
from typing import Dict

from muster_worker.agent.log import Log
from muster_worker.rank_group.lines import LineSplitter, add_prefix
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.tail import Tail

_F_SETPIPE_SZ = 1031  # linux/fcntl.h
_F_GETPIPE_SZ = 1032
_PIPE_BYTES = 256 * 1024
"""Pipe size for bursts of output. The kernel limits large pipes per user; the default size is slower but correct."""


class Stream:
    """The read end of a process' standard output or standard error. It owns the descriptor."""

    def __init__(self, descriptor: int, prefix: str, log: Log, metrics: MetricReader) -> None:
        os.set_blocking(descriptor, False)
        try:
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # not a pipe, or too many large pipes of this user
        self.descriptor = descriptor
        self.closed = False
        self.tail = Tail()
        self.prefix = prefix
        self._log = log
        self._metrics = metrics
        self._splitter = LineSplitter()

    def read(self) -> Dict[str, float]:
        """Read once what is available. Returns the metrics in it."""
        try:
            data = os.read(self.descriptor, _PIPE_BYTES)
        except (BlockingIOError, InterruptedError):
            return {}
        except OSError:
            data = b""
        if not data:
            self.closed = True
        self.tail.feed(data)
        metrics = self._log_lines(self._splitter.feed(data) if data else self._splitter.end())
        # A script may print its loss in a progress bar only, whose line ends with the epoch.
        metrics.update(self._metrics.read(self._splitter.overwritten))
        return metrics

    def drain(self) -> Dict[str, float]:
        """Read what an ended process has written, at most the pipe's capacity. Returns the metrics in it."""
        metrics: Dict[str, float] = {}
        remaining = _capacity(self.descriptor)
        while remaining > 0 and not self.closed:
            before = self.tail.total
            metrics.update(self.read())
            count = self.tail.total - before
            if count == 0:
                break
            remaining -= count
        return metrics

    def close(self) -> None:
        """Log an incomplete last line and close the descriptor."""
        self.closed = True
        self._log_lines(self._splitter.end())
        os.close(self.descriptor)

    def release(self, selector: selectors.BaseSelector) -> None:
        """Unregister it from `selector` and close it."""
        try:
            selector.unregister(self.descriptor)
        except KeyError:
            pass  # never registered: the hello was rejected
        self.close()

    def _log_lines(self, lines: bytes) -> Dict[str, float]:
        self._log.write(add_prefix(lines, f"[{self.prefix}] ".encode()))
        return self._metrics.read(lines)


def _capacity(descriptor: int) -> int:
    try:
        return fcntl.fcntl(descriptor, _F_GETPIPE_SZ)
    except OSError:
        return _PIPE_BYTES

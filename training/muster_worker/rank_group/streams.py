"""One output of one process: read without blocking, passed on line by line, its end remembered."""

from __future__ import annotations

import fcntl
import os
import selectors
from typing import Dict

from muster_worker.agent.log import Log
from muster_worker.rank_group.lines import LineSplitter, with_prefix
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.tail import Tail

_F_SETPIPE_SZ = 1031  # linux/fcntl.h
_F_GETPIPE_SZ = 1032
_PIPE_BYTES = 256 * 1024
"""Room for a burst; what one user may have of such pipes is limited, and then the pipe stays as it is."""


class Stream:
    """The read end of a process' standard output or standard error; owns the descriptor."""

    def __init__(self, descriptor: int, prefix: str, log: Log, metrics: MetricReader) -> None:
        os.set_blocking(descriptor, False)
        try:
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # not a pipe, or the user has too many large ones: slower, not wrong
        self.descriptor = descriptor
        self.closed = False
        self.tail = Tail()
        self.prefix = prefix
        self._log = log
        self._metrics = metrics
        self._splitter = LineSplitter()

    def read(self) -> Dict[str, float]:
        """Take what is there, once; returns the metrics in it."""
        try:
            data = os.read(self.descriptor, _PIPE_BYTES)
        except (BlockingIOError, InterruptedError):
            return {}
        except OSError:
            data = b""
        if not data:
            self.closed = True
        self.tail.feed(data)
        metrics = self._pass_on(self._splitter.feed(data) if data else self._splitter.end())
        # a progress bar may be the only place where a script prints its loss, and its line ends with the epoch
        metrics.update(self._metrics.read(self._splitter.overwritten))
        return metrics

    def drain(self) -> Dict[str, float]:
        """Take all that a process had written before it ended, never more than a pipe holds."""
        metrics: Dict[str, float] = {}
        left = _capacity(self.descriptor)
        while left > 0 and not self.closed:
            before = self.tail.total
            metrics.update(self.read())
            taken = self.tail.total - before
            if taken == 0:
                break
            left -= taken
        return metrics

    def close(self) -> None:
        """Give up the descriptor; what is left without a newline is passed on."""
        self.closed = True
        self._pass_on(self._splitter.end())
        os.close(self.descriptor)

    def release(self, selector: selectors.BaseSelector) -> None:
        """Close it, and end `selector`'s watch over it if there is one."""
        try:
            selector.unregister(self.descriptor)
        except KeyError:
            pass  # it was never watched: the process that brought it was not believed
        self.close()

    def _pass_on(self, lines: bytes) -> Dict[str, float]:
        self._log.write(with_prefix(lines, f"[{self.prefix}] ".encode()))
        return self._metrics.read(lines)


def _capacity(descriptor: int) -> int:
    try:
        return fcntl.fcntl(descriptor, _F_GETPIPE_SZ)
    except OSError:
        return _PIPE_BYTES

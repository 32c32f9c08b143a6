"""The agent's standard output: the ranks' lines and its own. A thread writes them, so that no caller blocks."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Deque

MAX_BUFFERED_BYTES = 32 * 1024 * 1024
"""Buffer for a slow reader of the agent's output. When it is full, a write waits, and so do the ranks."""

MAX_WAIT_SECONDS = 0.2
"""After this time a write drops and counts its lines, because the agent has to continue: 1 MiB/s is fast enough."""


class Log:
    """Writes to a file descriptor without blocking the caller."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: Deque[bytes] = deque()
        self._buffered_bytes = 0
        self._dropped_lines = 0
        self._missing_lines = 0  # lines dropped since the last queued line
        self._is_stuck = False  # the last write waited in vain
        self._condition = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def dropped_lines(self) -> int:
        """Number of lines dropped so far."""
        return self._dropped_lines

    def write(self, lines: bytes) -> None:
        """Queue complete lines."""
        if not lines:
            return
        with self._condition:
            if not self._condition.wait_for(lambda: self._has_space(len(lines)), self._get_wait_seconds()):
                self._dropped_lines += lines.count(b"\n")
                self._missing_lines += lines.count(b"\n")
                self._is_stuck = True
                return
            self._is_stuck = False
            self._enqueue(self._describe_missing_lines() + lines)

    def print_line(self, text: str) -> None:
        """Write a line from muster itself."""
        self.write(f"[muster] {text}\n".encode("utf-8", "replace"))

    def flush(self, timeout: float) -> None:
        """Wait until all lines are written. Returns earlier if none is written for `timeout` seconds."""
        with self._condition:
            if self._missing_lines:
                self._enqueue(self._describe_missing_lines())
            deadline, remaining = time.monotonic() + timeout, self._buffered_bytes
            while remaining and time.monotonic() < deadline:
                self._condition.wait(max(0.0, deadline - time.monotonic()))
                if self._buffered_bytes != remaining:
                    deadline, remaining = time.monotonic() + timeout, self._buffered_bytes

    def _has_space(self, size: int) -> bool:
        return self._buffered_bytes + size <= MAX_BUFFERED_BYTES

    def _get_wait_seconds(self) -> float:
        # A reader that has stopped reading does not delay every write.
        return 0.0 if self._is_stuck else MAX_WAIT_SECONDS

    def _enqueue(self, lines: bytes) -> None:
        self._queue.append(lines)
        self._buffered_bytes += len(lines)
        self._condition.notify_all()

    def _describe_missing_lines(self) -> bytes:
        missing_lines, self._missing_lines = self._missing_lines, 0
        text = f"[muster] {missing_lines} lines are missing here, because the output was read too slowly\n"
        return text.encode("ascii") if missing_lines else b""

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: bool(self._queue))
                lines = self._queue.popleft()
            is_lost = not self._write_all(lines)
            with self._condition:
                self._buffered_bytes -= len(lines)
                self._dropped_lines += lines.count(b"\n") if is_lost else 0
                self._condition.notify_all()

    def _write_all(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                time.sleep(0.01)  # another process made the shared descriptor non-blocking; no event to wait for
            except OSError:
                return False  # the reader has closed the pipe, or the disk is full: the ranks continue
        return True

"""The agent's standard output: the ranks' lines and its own. A thread writes them, so that no caller blocks."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Deque

MAX_BUFFERED_BYTES = 32 * 1024 * 1024
"""Buffer for a slow reader of the agent's output. When it is full, the log drops and counts lines."""


class Log:
    """Writes to a file descriptor without blocking the caller."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: Deque[bytes] = deque()
        self._buffered = 0
        self._dropped = 0
        self._gap = 0  # lines dropped since the last queued line
        self._wake = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def dropped_lines(self) -> int:
        """Number of lines dropped so far."""
        return self._dropped

    def write(self, lines: bytes) -> None:
        """Queue complete lines."""
        if not lines:
            return
        with self._wake:
            if self._buffered + len(lines) > MAX_BUFFERED_BYTES:
                self._dropped += lines.count(b"\n")
                self._gap += lines.count(b"\n")
                return
            self._enqueue(self._take_gap() + lines)

    def print_line(self, text: str) -> None:
        """Write a line from muster itself."""
        self.write(f"[muster] {text}\n".encode("utf-8", "replace"))

    def flush(self, timeout: float) -> None:
        """Wait until all lines are written, for at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._wake:
            self._wake.wait_for(lambda: self._buffered == 0, max(0.0, deadline - time.monotonic()))
            if self._gap:
                self._enqueue(self._take_gap())
                self._wake.wait_for(lambda: self._buffered == 0, max(0.0, deadline - time.monotonic()))

    def _enqueue(self, lines: bytes) -> None:
        self._queue.append(lines)
        self._buffered += len(lines)
        self._wake.notify_all()

    def _take_gap(self) -> bytes:
        gap, self._gap = self._gap, 0
        text = f"[muster] {gap} lines are missing here, because the output was read too slowly\n"
        return text.encode("ascii") if gap else b""

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._queue))
                lines = self._queue.popleft()
            is_lost = not self._write_all(lines)
            with self._wake:
                self._buffered -= len(lines)
                self._dropped += lines.count(b"\n") if is_lost else 0
                self._wake.notify_all()

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

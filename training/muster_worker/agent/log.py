"""The agent's standard output: ranks' lines and its own, written by a thread of its own so that nobody waits for it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Deque

MAX_BUFFERED_BYTES = 32 * 1024 * 1024
"""What waits for a slow reader of the agent's output; beyond it lines are dropped and counted."""


class Log:
    """Writes to a file descriptor without ever blocking the caller."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: Deque[bytes] = deque()
        self._buffered = 0
        self._dropped = 0
        self._gap = 0  # lines given up since the last one that was queued
        self._wake = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    @property
    def dropped_lines(self) -> int:
        """Lines given up so far."""
        return self._dropped

    def write(self, lines: bytes) -> None:
        """Queue whole lines."""
        if not lines:
            return
        with self._wake:
            if self._buffered + len(lines) > MAX_BUFFERED_BYTES:
                self._dropped += lines.count(b"\n")
                self._gap += lines.count(b"\n")
                return
            self._enqueue(self._take_gap() + lines)

    def say(self, text: str) -> None:
        """A line of muster's own."""
        self.write(f"[muster] {text}\n".encode("utf-8", "replace"))

    def flush(self, timeout: float) -> None:
        """Wait until all is written, at most `timeout` seconds."""
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
        text = f"[muster] {gap} lines are missing here: they came faster than the output was read\n"
        return text.encode("ascii") if gap else b""

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._queue))
                lines = self._queue.popleft()
            lost = not self._write_all(lines)
            with self._wake:
                self._buffered -= len(lines)
                self._dropped += lines.count(b"\n") if lost else 0
                self._wake.notify_all()

    def _write_all(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                time.sleep(0.01)  # whoever shares the descriptor made it non-blocking; there is no event to wait for
            except OSError:
                return False  # the reader is gone, or the disk is full: the ranks go on
        return True

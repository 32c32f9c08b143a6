"""Relays a rank's output, stores its last lines, and inserts muster's own lines between those of the rank."""

from __future__ import annotations

import os
import select
import time
from typing import Callable, Dict, List, Sequence, Tuple

from muster_worker.contract.error_text import find_error
from muster_worker.rank_group.tail import Tail

_CHUNK = 64 * 1024

HOLD_SECONDS = 0.05
"""Time to wait for the rest of a line. Unbuffered Python writes a line in pieces, and mpirun and SageMaker's toolkit
would print each piece as a separate line."""

MAX_WAIT_SECONDS = 5.0
"""Time that one of muster's lines waits for the end of the rank's line, which some programs never write."""


class _Stream:
    """One of the rank's outputs, with the descriptor to read from and the descriptor to write to."""

    def __init__(self, reader: int, target: int) -> None:
        self.reader = reader
        self.target = target
        self.tail = Tail()
        self.at_line_start = True
        self.incomplete_line = b""
        self.incomplete_since = 0.0
        os.set_blocking(reader, False)

    def add(self, data: bytes) -> bytes:
        """Add data. Returns the complete lines, to write now."""
        if not self.incomplete_line:
            self.incomplete_since = time.monotonic()
        self.incomplete_line += data
        cut = max(self.incomplete_line.rfind(b"\n"), self.incomplete_line.rfind(b"\r")) + 1
        if len(self.incomplete_line) - cut > _CHUNK:
            cut = len(self.incomplete_line)
        if cut:
            self.incomplete_since = time.monotonic()
        ready, self.incomplete_line = self.incomplete_line[:cut], self.incomplete_line[cut:]
        return ready

    def take_incomplete_line(self) -> bytes:
        """Return the incomplete line."""
        ready, self.incomplete_line = self.incomplete_line, b""
        return ready


class Relay:
    """Relays the rank's outputs: pairs of (descriptor to read, descriptor to write). The last output is standard error.

    muster's lines are written to the target of the first output. Use the relay from one thread at a time.
    """

    def __init__(self, outputs: Sequence[Tuple[int, int]]) -> None:
        self._streams = [_Stream(reader, target) for reader, target in outputs]
        self._first_stream = self._streams[0]
        self._open: Dict[int, _Stream] = {stream.reader: stream for stream in self._streams}
        self._poll = select.poll()
        for reader in self._open:
            self._poll.register(reader, select.POLLIN)
        self._queued_lines: List[str] = []
        self._queued_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a process can still write to one of the outputs."""
        return bool(self._open)

    @property
    def error_text(self) -> str:
        """The last part of the rank's standard error."""
        return self._streams[-1].tail.text

    def find_error(self) -> str:
        """Return the last error in the stored output, of standard error if it has one; "" without one."""
        errors = (find_error(stream.tail.text) for stream in reversed(self._streams))
        return next(filter(None, errors), "")

    def read_last_lines(self) -> Tuple[str, ...]:
        """Return the last lines of standard error, or of standard output if standard error is empty."""
        return self._streams[-1].tail.read_last_lines() or self._streams[0].tail.read_last_lines()

    def run(self, stop: int, tick: Callable[[], float]) -> None:
        """Relay until `stop` is readable. Calls `tick` at once, and again after the seconds that it returns."""
        self._poll.register(stop, select.POLLIN)
        next_tick_at = time.monotonic() + tick()
        while True:
            now = time.monotonic()
            if now >= next_tick_at:
                next_tick_at = now + tick()
            ready = self._poll.poll(max(0.0, self._compute_wake_time(next_tick_at) - now) * 1000)
            self._copy([reader for reader, _ in ready if reader != stop])
            self._write_incomplete_lines(HOLD_SECONDS)
            self._print_if_possible()
            if any(reader == stop for reader, _ in ready):
                self._poll.unregister(stop)
                return

    def drain(self, seconds: float) -> None:
        """Relay available output for at most `seconds`: a leftover process may keep an output open."""
        deadline = time.monotonic() + seconds
        while self._open:
            ready = self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                break
            self._copy([reader for reader, _ in ready])
        self._write_incomplete_lines(0.0)
        self._print_if_possible()

    def copy_rest(self) -> None:
        """Relay until all writers have closed the outputs."""
        while self._open:
            self._copy([reader for reader, _ in self._poll.poll()])
            self._write_incomplete_lines(0.0)

    def print_line(self, line: str) -> None:
        """Print one of muster's lines as soon as the rank's line is complete."""
        if not self._queued_lines:
            self._queued_since = time.monotonic()
        self._queued_lines.append(line)
        self._print_if_possible()

    def print_last(self, line: str) -> None:
        """Print one of muster's lines now, after the rank's end."""
        self._queued_lines.append(line)
        self._print_queued_lines()

    def _print_if_possible(self) -> None:
        is_overdue = time.monotonic() >= self._queued_since + MAX_WAIT_SECONDS
        if self._queued_lines and (self._first_stream.at_line_start or is_overdue):
            self._print_queued_lines()

    def _print_queued_lines(self) -> None:
        # Start a new line, so that both lines are readable.
        start = "" if self._first_stream.at_line_start else "\n"
        text = start + "".join(f"{line}\n" for line in self._queued_lines)
        self._queued_lines = []
        if _write(self._first_stream.target, text.encode("ascii", "replace")):
            self._first_stream.at_line_start = True

    def _compute_wake_time(self, next_tick_at: float) -> float:
        """Return the time of the next action if no output arrives."""
        times = [stream.incomplete_since + HOLD_SECONDS for stream in self._open.values() if stream.incomplete_line]
        if self._queued_lines:
            times.append(self._queued_since + MAX_WAIT_SECONDS)
        return min([next_tick_at, *times])

    def _copy(self, readers: Sequence[int]) -> None:
        for reader in readers:
            stream = self._open[reader]
            try:
                data = os.read(reader, _CHUNK)
            except BlockingIOError:
                continue
            stream.tail.feed(data)
            if not data or not self._write_stream(stream, stream.add(data)):
                self._close(stream)

    def _write_incomplete_lines(self, seconds: float) -> None:
        """Write lines that were held for this time."""
        now = time.monotonic()
        for stream in list(self._open.values()):
            if (
                stream.incomplete_line
                and now >= stream.incomplete_since + seconds
                and not self._write_stream(stream, stream.take_incomplete_line())
            ):
                self._close(stream)

    def _write_stream(self, stream: _Stream, data: bytes) -> bool:
        if data and not _write(stream.target, data):
            return False
        stream.at_line_start = data.endswith(b"\n") if data else stream.at_line_start
        return True

    def _close(self, stream: _Stream) -> None:
        # If the target is closed, stop reading: then the rank gets SIGPIPE, as it would without the relay.
        self._write_stream(stream, stream.take_incomplete_line())
        self._poll.unregister(stream.reader)
        os.close(stream.reader)
        del self._open[stream.reader]


def _write(target: int, data: bytes) -> bool:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # another process has made the shared descriptor non-blocking
            select.select([], [target], [])
        except OSError:
            return False
    return True


def make_printable(lines: Sequence[str], limit: int) -> Tuple[str, ...]:
    """Replace control characters and shorten each line to `limit` characters."""
    printable = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
    return tuple(line if len(line) <= limit else line[: limit - 1] + "…" for line in printable)

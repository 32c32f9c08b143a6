"""Relays a rank's output, stores its last lines, and inserts muster's own lines between those of the rank."""

from __future__ import annotations

import os
import select
import time
from typing import Callable, Dict, List, Sequence, Tuple

from muster_worker.rank_group.tail import Tail

_CHUNK = 64 * 1024

HOLD_SECONDS = 0.05
"""How long to hold an incomplete line. Unbuffered Python writes a line in pieces, and mpirun and SageMaker's toolkit
would print each piece as a line."""

MAX_WAIT_SECONDS = 5.0
"""How long one of muster's lines waits for the end of the rank's line: some programs never end it."""


class _Stream:
    """One of the rank's outputs: the descriptor to read and the one to write."""

    def __init__(self, reader: int, target: int) -> None:
        self.reader = reader
        self.target = target
        self.tail = Tail()
        self.at_line_start = True
        self.held = b""
        self.held_since = 0.0
        os.set_blocking(reader, False)

    def add(self, data: bytes) -> bytes:
        """Add data. Returns what to write now: everything up to the last line's end."""
        if not self.held:
            self.held_since = time.monotonic()
        self.held += data
        cut = max(self.held.rfind(b"\n"), self.held.rfind(b"\r")) + 1
        if len(self.held) - cut > _CHUNK:
            cut = len(self.held)
        if cut:
            self.held_since = time.monotonic()
        ready, self.held = self.held[:cut], self.held[cut:]
        return ready

    def take_held(self) -> bytes:
        """Return the incomplete line."""
        ready, self.held = self.held, b""
        return ready


class Relay:
    """Relays the rank's outputs, (descriptor to read, descriptor to write) each; the last one is standard error.

    muster's lines go to the first one's target. Use it from one thread at a time.
    """

    def __init__(self, outputs: Sequence[Tuple[int, int]]) -> None:
        self._streams = [_Stream(reader, target) for reader, target in outputs]
        self._first = self._streams[0]
        self._open: Dict[int, _Stream] = {stream.reader: stream for stream in self._streams}
        self._poll = select.poll()
        for reader in self._open:
            self._poll.register(reader, select.POLLIN)
        self._waiting: List[str] = []
        self._waiting_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a process can still write to one of the outputs."""
        return bool(self._open)

    @property
    def error_text(self) -> str:
        """The last part of the rank's standard error."""
        return self._streams[-1].tail.text

    def last_lines(self) -> Tuple[str, ...]:
        """The last lines of standard error, or of standard output without any."""
        return self._streams[-1].tail.last_lines() or self._streams[0].tail.last_lines()

    def run(self, stop: int, tick: Callable[[], float]) -> None:
        """Relay until `stop` is readable. Calls `tick` at once and then after the seconds that it returned."""
        self._poll.register(stop, select.POLLIN)
        due = time.monotonic() + tick()
        while True:
            now = time.monotonic()
            if now >= due:
                due = now + tick()
            ready = self._poll.poll(max(0.0, self._next_time(due) - now) * 1000)
            self._copy([reader for reader, _ in ready if reader != stop])
            self._write_held(HOLD_SECONDS)
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
        self._write_held(0.0)
        self._print_if_possible()

    def copy_rest(self) -> None:
        """Relay until all writers have closed the outputs."""
        while self._open:
            self._copy([reader for reader, _ in self._poll.poll()])
            self._write_held(0.0)

    def print_line(self, line: str) -> None:
        """Print one of muster's lines as soon as the rank's line is complete."""
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(line)
        self._print_if_possible()

    def print_last(self, line: str) -> None:
        """Print one of muster's lines now, after the rank's end."""
        self._waiting.append(line)
        self._print_waiting()

    def _print_if_possible(self) -> None:
        is_overdue = time.monotonic() >= self._waiting_since + MAX_WAIT_SECONDS
        if self._waiting and (self._first.at_line_start or is_overdue):
            self._print_waiting()

    def _print_waiting(self) -> None:
        # Start a new line, so that both lines are readable.
        start = "" if self._first.at_line_start else "\n"
        text = start + "".join(f"{line}\n" for line in self._waiting)
        self._waiting = []
        if _write(self._first.target, text.encode("ascii", "replace")):
            self._first.at_line_start = True

    def _next_time(self, due: float) -> float:
        """When to act next if no output arrives."""
        times = [stream.held_since + HOLD_SECONDS for stream in self._open.values() if stream.held]
        if self._waiting:
            times.append(self._waiting_since + MAX_WAIT_SECONDS)
        return min([due, *times])

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

    def _write_held(self, seconds: float) -> None:
        """Write lines that were held for this time."""
        now = time.monotonic()
        for stream in list(self._open.values()):
            if (
                stream.held
                and now >= stream.held_since + seconds
                and not self._write_stream(stream, stream.take_held())
            ):
                self._close(stream)

    def _write_stream(self, stream: _Stream, data: bytes) -> bool:
        if data and not _write(stream.target, data):
            return False
        stream.at_line_start = data.endswith(b"\n") if data else stream.at_line_start
        return True

    def _close(self, stream: _Stream) -> None:
        # Stop reading if the target is closed: the rank gets SIGPIPE, as it would without the relay.
        self._write_stream(stream, stream.take_held())
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


def plain(lines: Sequence[str], limit: int) -> Tuple[str, ...]:
    """Replace control characters and shorten each line to `limit` characters."""
    printable = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
    return tuple(line if len(line) <= limit else line[: limit - 1] + "…" for line in printable)

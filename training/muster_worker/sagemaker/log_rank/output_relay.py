"""Passes a rank's output on as it comes, keeps its last lines, and puts muster's own lines in between, never inside."""

from __future__ import annotations

import os
import select
import time
from typing import Callable, Dict, List, Sequence, Tuple

from muster_worker.rank_group.tail import Tail

_CHUNK = 64 * 1024

HOLD_SECONDS = 0.05
"""So long the beginning of a line waits for its end. An unbuffered Python writes each word by itself, and mpirun and
SageMaker's toolkit, who read what we write, end a line where a piece of it ends."""

PATIENCE_SECONDS = 5.0
"""So long a line of muster's waits for the end of a line of the rank's: some programs never end one."""


class _Stream:
    """One of the rank's outputs: the end that we read, and where it goes."""

    def __init__(self, reader: int, target: int) -> None:
        self.reader = reader
        self.target = target
        self.tail = Tail()
        self.at_line_start = True
        self.held = b""
        self.held_since = 0.0
        os.set_blocking(reader, False)

    def take(self, data: bytes) -> bytes:
        """What of it, and of what is held, goes on now: all up to the last line's end."""
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

    def give(self) -> bytes:
        """What is held."""
        ready, self.held = self.held, b""
        return ready


class Relay:
    """The rank's outputs, each a pair of the descriptor to read and that to write to; the last goes for errors.

    Muster's lines go where the first one goes. Belongs to one thread at a time.
    """

    def __init__(self, outputs: Sequence[Tuple[int, int]]) -> None:
        self._streams = [_Stream(reader, target) for reader, target in outputs]
        self._own = self._streams[0]
        self._open: Dict[int, _Stream] = {stream.reader: stream for stream in self._streams}
        self._poll = select.poll()
        for reader in self._open:
            self._poll.register(reader, select.POLLIN)
        self._waiting: List[str] = []
        self._waiting_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether somebody may still write to one of the rank's outputs."""
        return bool(self._open)

    @property
    def error_text(self) -> str:
        """What is kept of the rank's errors."""
        return self._streams[-1].tail.text

    def last_lines(self) -> Tuple[str, ...]:
        """The last lines of its errors, or of its output when there are none."""
        return self._streams[-1].tail.last_lines() or self._streams[0].tail.last_lines()

    def run(self, stop: int, tick: Callable[[], float]) -> None:
        """Copy until something is written to `stop`. `tick` is called at once and after the seconds that it returns."""
        self._poll.register(stop, select.POLLIN)
        due = time.monotonic() + tick()
        while True:
            now = time.monotonic()
            if now >= due:
                due = now + tick()
            ready = self._poll.poll(max(0.0, self._limit(due) - now) * 1000)
            self._copy([reader for reader, _ in ready if reader != stop])
            self._let_go(HOLD_SECONDS)
            self._say_waiting()
            if any(reader == stop for reader, _ in ready):
                self._poll.unregister(stop)
                return

    def drain(self, seconds: float) -> None:
        """Copy what is there, for at most `seconds`; a process that the rank left behind may keep an output open."""
        deadline = time.monotonic() + seconds
        while self._open:
            ready = self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                break
            self._copy([reader for reader, _ in ready])
        self._let_go(0.0)
        self._say_waiting()

    def copy_rest(self) -> None:
        """Copy until nobody can write any more."""
        while self._open:
            self._copy([reader for reader, _ in self._poll.poll()])
            self._let_go(0.0)

    def say(self, line: str) -> None:
        """Print a line of muster's own as soon as it doesn't break one of the rank's."""
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append(line)
        self._say_waiting()

    def say_at_last(self, line: str) -> None:
        """Print a line of muster's own now: the rank has ended, in the middle of a line or not."""
        self._waiting.append(line)
        self._print_waiting()

    def _say_waiting(self) -> None:
        impatient = time.monotonic() >= self._waiting_since + PATIENCE_SECONDS
        if self._waiting and (self._own.at_line_start or impatient):
            self._print_waiting()

    def _print_waiting(self) -> None:
        # whoever forces a line into an unfinished one leaves both readable
        start = "" if self._own.at_line_start else "\n"
        text = start + "".join(f"{line}\n" for line in self._waiting)
        self._waiting = []
        if _write(self._own.target, text.encode("ascii", "replace")):
            self._own.at_line_start = True

    def _limit(self, due: float) -> float:
        """When something has to be done if nothing comes before."""
        times = [stream.held_since + HOLD_SECONDS for stream in self._open.values() if stream.held]
        if self._waiting:
            times.append(self._waiting_since + PATIENCE_SECONDS)
        return min([due, *times])

    def _copy(self, readers: Sequence[int]) -> None:
        for reader in readers:
            stream = self._open[reader]
            try:
                data = os.read(reader, _CHUNK)
            except BlockingIOError:
                continue
            stream.tail.feed(data)
            if not data or not self._pass_on(stream, stream.take(data)):
                self._close(stream)

    def _let_go(self, seconds: float) -> None:
        """Pass on what has been held for so long."""
        now = time.monotonic()
        for stream in list(self._open.values()):
            if stream.held and now >= stream.held_since + seconds and not self._pass_on(stream, stream.give()):
                self._close(stream)

    def _pass_on(self, stream: _Stream, data: bytes) -> bool:
        if data and not _write(stream.target, data):
            return False
        stream.at_line_start = data.endswith(b"\n") if data else stream.at_line_start
        return True

    def _close(self, stream: _Stream) -> None:
        # a reader of ours that is gone is the rank's to find out, as it would without us
        self._pass_on(stream, stream.give())
        self._poll.unregister(stream.reader)
        os.close(stream.reader)
        del self._open[stream.reader]


def _write(target: int, data: bytes) -> bool:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # somebody made the descriptor so, for all who share it
            select.select([], [target], [])
        except OSError:
            return False
    return True


def plain(lines: Sequence[str], limit: int) -> Tuple[str, ...]:
    """Lines without control characters, each of at most `limit` characters."""
    printable = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
    return tuple(line if len(line) <= limit else line[: limit - 1] + "…" for line in printable)

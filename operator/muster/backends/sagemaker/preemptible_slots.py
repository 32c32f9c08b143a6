"""Limit concurrent work fairly: owners take turns, and a long turn ends when others wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count


class SlotPreempted(Exception):
    """The guaranteed time of a turn is over, and another owner waits."""


@dataclass(eq=False)
class _Turn:
    """`limit` can end the turn once it is entered; `until` is the end of its guaranteed time (the loop's clock)."""

    owner: str
    host: str
    started: asyncio.Future[None]
    limit: asyncio.Timeout
    until: float = 0.0
    is_entered: bool = False
    is_preempted: bool = False


class PreemptibleSlots:
    """At most `at_once` turns run: one of each owner, and half of them with one host. Belongs to one event loop.

    Owners take turns, however many jobs each has. A turn is guaranteed `guaranteed_seconds`, and then continues until
    another owner waits for its slot.
    """

    def __init__(self, at_once: int, guaranteed_seconds: float) -> None:
        self._at_once = at_once
        self._max_per_host = max(1, at_once // 2)
        self._guaranteed_seconds = guaranteed_seconds
        self._waiting: list[_Turn] = []
        self._running: list[_Turn] = []
        self._last: dict[str, int] = {}
        self._sequence = count(1)
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, owner: str, host: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the block ends; `host` "": not limited by host.

        The block raises `SlotPreempted` when its time is over and others wait.
        """
        turn = _Turn(owner, host, asyncio.get_running_loop().create_future(), asyncio.timeout(None))
        self._waiting.append(turn)
        self._start_next()
        try:
            await turn.started
            async with turn.limit:
                turn.is_entered = True
                self._start_next()
                yield
        except TimeoutError:
            if turn.is_preempted and turn.limit.expired():
                raise SlotPreempted from None
            raise
        finally:
            # a cancelled turn may not have started
            (self._running if turn in self._running else self._waiting).remove(turn)
            self._forget(owner)
            self._start_next()

    def _start_next(self) -> None:
        now = asyncio.get_running_loop().time()
        while len(self._running) < self._at_once:
            free = [turn for turn in self._waiting if self._is_free(turn)]
            if not free:
                break
            # among owners without an earlier turn, the first in the queue
            chosen = min(free, key=lambda turn: self._last.get(turn.owner, 0))
            self._waiting.remove(chosen)
            self._running.append(chosen)
            self._last[chosen.owner] = next(self._sequence)
            chosen.until = now + self._guaranteed_seconds
            chosen.started.set_result(None)
        self._preempt(now)

    def _preempt(self, now: float) -> None:
        """End the turn that has run longest, if its time is over and another owner waits for its slot."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        blocking = [turn for turn in self._running if any(self._waits_for(other, turn) for other in self._waiting)]
        # preempt one at a time: the next one follows when it has ended
        if any(turn.is_preempted for turn in blocking):
            return
        first = min((turn for turn in blocking if turn.is_entered), key=lambda turn: turn.until, default=None)
        if first is None:
            return
        if now >= first.until:
            first.is_preempted = True
            first.limit.reschedule(now)
        else:
            self._alarm = asyncio.get_running_loop().call_at(first.until, self._start_next)

    def _waits_for(self, waiting: _Turn, other: _Turn) -> bool:
        """Whether `waiting` could start if `other` ended."""
        if waiting.started.done() or waiting.owner == other.owner:
            return False
        remaining = [turn for turn in self._running if turn is not other]
        return self._fits(waiting, remaining)

    def _is_free(self, turn: _Turn) -> bool:
        return not turn.started.done() and self._fits(turn, self._running)

    def _fits(self, turn: _Turn, running: list[_Turn]) -> bool:
        if any(other.owner == turn.owner for other in running):
            return False
        same_host = sum(other.host == turn.host for other in running) if turn.host else 0
        return len(running) < self._at_once and same_host < self._max_per_host

    def _forget(self, owner: str) -> None:
        """Drop an owner without turns."""
        if not any(turn.owner == owner for turn in (*self._waiting, *self._running)):
            self._last.pop(owner, None)

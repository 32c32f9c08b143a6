"""Who may begin next with something of which little is done at once, and how long one may go on while others wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count


class TurnCut(Exception):
    """A turn has lasted for longer than is promised to each, and another owner waits."""


@dataclass(eq=False)
class _Turn:
    """`limit` ends it, once it is entered; `until` is until when it is promised (seconds of the loop's clock)."""

    owner: str
    host: str
    begun: asyncio.Future[None]
    limit: asyncio.Timeout
    until: float = 0.0
    is_entered: bool = False
    is_cut: bool = False


class Turns:
    """At most `at_once` go on at a time: one of each owner, and half of them with one host. Belongs to one event loop.

    Owners take turns, however many jobs one of them has. Each turn is promised `promised_seconds`; after those it goes
    on for as long as no other waits for its place.
    """

    def __init__(self, at_once: int, promised_seconds: float) -> None:
        self._at_once = at_once
        self._of_one_host = max(1, at_once // 2)
        self._promised_seconds = promised_seconds
        self._waiting: list[_Turn] = []
        self._going_on: list[_Turn] = []
        self._last: dict[str, int] = {}
        self._numbers = count(1)
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, owner: str, host: str = "") -> AsyncIterator[None]:
        """Wait for one's turn, and have it for as long as the block lasts; `host` "": nobody else's.

        Raises `TurnCut` out of the block when its time is over and others wait.
        """
        mine = _Turn(owner, host, asyncio.get_running_loop().create_future(), asyncio.timeout(None))
        self._waiting.append(mine)
        self._begin()
        try:
            await mine.begun
            async with mine.limit:
                mine.is_entered = True
                self._begin()
                yield
        except TimeoutError:
            if mine.is_cut and mine.limit.expired():
                raise TurnCut from None
            raise
        finally:
            # who is cancelled may still have waited
            (self._going_on if mine in self._going_on else self._waiting).remove(mine)
            self._forget(owner)
            self._begin()

    def _begin(self) -> None:
        now = asyncio.get_running_loop().time()
        while len(self._going_on) < self._at_once:
            free = [one for one in self._waiting if self._is_free(one)]
            if not free:
                break
            # of two that never had one: who came first
            chosen = min(free, key=lambda one: self._last.get(one.owner, 0))
            self._waiting.remove(chosen)
            self._going_on.append(chosen)
            self._last[chosen.owner] = next(self._numbers)
            chosen.until = now + self._promised_seconds
            chosen.begun.set_result(None)
        self._make_room(now)

    def _make_room(self, now: float) -> None:
        """Cut the turn that has lasted longest, if another owner waits for what it has and its time is over."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        in_the_way = [one for one in self._going_on if any(self._waits_for(other, one) for other in self._waiting)]
        # one at a time: the next one may go on once it has ended
        if any(one.is_cut for one in in_the_way):
            return
        first = min((one for one in in_the_way if one.is_entered), key=lambda one: one.until, default=None)
        if first is None:
            return
        if now >= first.until:
            first.is_cut = True
            first.limit.reschedule(now)
        else:
            self._alarm = asyncio.get_running_loop().call_at(first.until, self._begin)

    def _waits_for(self, waiting: _Turn, other: _Turn) -> bool:
        """Whether `waiting` could begin if `other` ended."""
        if waiting.begun.done() or waiting.owner == other.owner:
            return False
        rest = [one for one in self._going_on if one is not other]
        return self._fits(waiting, rest)

    def _is_free(self, one: _Turn) -> bool:
        return not one.begun.done() and self._fits(one, self._going_on)

    def _fits(self, one: _Turn, beside: list[_Turn]) -> bool:
        if any(other.owner == one.owner for other in beside):
            return False
        of_its_host = sum(other.host == one.host for other in beside) if one.host else 0
        return len(beside) < self._at_once and of_its_host < self._of_one_host

    def _forget(self, owner: str) -> None:
        """Owners come and go; one who has nothing left to do begins anew."""
        if not any(one.owner == owner for one in (*self._waiting, *self._going_on)):
            self._last.pop(owner, None)

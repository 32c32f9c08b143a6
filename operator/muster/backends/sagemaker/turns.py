"""Who may begin next with something of which little is done at once, and which others may make last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True, eq=False)
class _Turn:
    owner: str
    host: str
    begun: asyncio.Future[None]


class Turns:
    """At most `at_once` go on at a time, one of each owner, and one with each host. Belongs to one event loop.

    So an owner's jobs wait for one another, and those who need a slow host for that host; the others go on. Owners take
    turns, however many jobs one of them has.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: list[_Turn] = []
        self._going_on: list[_Turn] = []
        self._last: dict[str, int] = {}
        self._numbers = count(1)

    @asynccontextmanager
    async def turn(self, owner: str, host: str) -> AsyncIterator[None]:
        """Wait for one's turn, and have it for as long as the block lasts."""
        mine = _Turn(owner, host, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._begin()
        try:
            await mine.begun
            yield
        finally:
            # who is cancelled may still have waited
            (self._going_on if mine in self._going_on else self._waiting).remove(mine)
            self._forget(owner)
            self._begin()

    def _begin(self) -> None:
        while len(self._going_on) < self._at_once:
            free = [one for one in self._waiting if self._is_free(one)]
            if not free:
                return
            # of two that never had one: who came first
            chosen = min(free, key=lambda one: self._last.get(one.owner, 0))
            self._waiting.remove(chosen)
            self._going_on.append(chosen)
            self._last[chosen.owner] = next(self._numbers)
            chosen.begun.set_result(None)

    def _is_free(self, one: _Turn) -> bool:
        if one.begun.done():
            return False
        return not any(other.owner == one.owner or other.host == one.host for other in self._going_on)

    def _forget(self, owner: str) -> None:
        """Owners come and go; one who has nothing left to do begins anew."""
        if not any(one.owner == owner for one in (*self._waiting, *self._going_on)):
            self._last.pop(owner, None)

"""Share slots among namespaces, so that one with many requests doesn't block the others."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

MAX_SHARE_OF_FREE = 3
"""A key may hold this multiple of the free slots, so a single key holds at most three quarters."""

LATE_SECONDS = 1.0
"""After this time, a slot no longer counts for its key's limit, because hanging requests must not block others."""


class FairSlots:
    """At most `total` slots at a time. The waiting key with the fewest slots is next; within a key, the first request.

    `limit` returns how many slots a key may hold at the moment, however many are free; it is called whenever a slot is
    requested or released.
    """

    def __init__(self, total: int, limit: Callable[[str], int] | None = None) -> None:
        self._free = total
        self._limit = limit or (lambda _: total)
        self._held: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it inside the block."""
        await self._acquire(key)
        is_late = asyncio.Event()
        timer = asyncio.get_running_loop().call_later(LATE_SECONDS, self._become_late, key, is_late)
        try:
            yield
        finally:
            timer.cancel()
            self._late[key] -= is_late.is_set()
            self._release(key)

    def _become_late(self, key: str, is_late: asyncio.Event) -> None:
        is_late.set()
        self._late[key] += 1
        self._grant_all()

    async def _acquire(self, key: str) -> None:
        if key not in self._waiting and self._may_take(key):
            self._take(key)
            return
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            # If the slot was granted in the same iteration, release it. Otherwise `_grant` skips the request.
            if not granted.cancelled():
                self._release(key)
            raise

    def _may_take(self, key: str) -> bool:
        held = self._held[key]
        return self._free > 0 and held < MAX_SHARE_OF_FREE * self._free and held - self._late[key] < self._limit(key)

    def is_idle(self, key: str) -> bool:
        """Whether the key neither holds a slot nor waits for one."""
        return key not in self._held and key not in self._waiting

    def _take(self, key: str) -> None:
        self._free -= 1
        self._held[key] += 1

    def _release(self, key: str) -> None:
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key], self._late[key]
        self._grant_all()

    def _grant_all(self) -> None:
        # Among equal keys, take the one that was served longest ago: `_waiting` has that order.
        while may := [waiting for waiting in self._waiting if self._may_take(waiting)]:
            self._grant(min(may, key=self._held.__getitem__))

    def _grant(self, key: str) -> None:
        """Give a slot to the first waiting request of this key, or skip it if it was cancelled."""
        waiting = self._waiting.pop(key)
        granted = waiting.popleft()
        if waiting:
            self._waiting[key] = waiting
        if not granted.done():
            self._take(key)
            granted.set_result(None)

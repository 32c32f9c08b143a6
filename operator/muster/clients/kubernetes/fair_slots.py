"""Share slots among namespaces, so that a namespace with many requests doesn't block the others."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

MAX_SHARE_OF_FREE = 3
"""The maximum ratio of a key's slots to the free slots. So a single key holds at most three quarters of all slots."""

LATE_SECONDS = 1.0
"""A slot that is held longer doesn't count for its key's limit: hanging requests must not block other requests."""


creation_order: ContextVar[int] = ContextVar("creation_order", default=0)
"""The place of a task among those that create objects: a lower number is first.

It is the job's place in the order of jobs. If a thousand jobs start at once, their pods are created job by job, so that
most jobs run long before the last one.
"""


@dataclass
class _WaitingRequests:
    """The requests of a key: those without an order with the oldest first, and a heap of those with an order.

    If both wait, they are taken in turns, because either kind may come faster than the slots become free.
    """

    unordered: deque[asyncio.Future[None]] = field(default_factory=deque)
    ordered: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    _is_ordered_next: bool = False
    _sequence: Iterator[int] = field(default_factory=itertools.count)

    def __bool__(self) -> bool:
        return bool(self.unordered or self.ordered)

    def append(self, future: asyncio.Future[None], order: int) -> None:
        if order:
            heapq.heappush(self.ordered, (order, next(self._sequence), future))
        else:
            self.unordered.append(future)

    def pop(self) -> asyncio.Future[None]:
        """Remove and return the next request, which may be cancelled already."""
        if self.ordered and (self._is_ordered_next or not self.unordered):
            self._is_ordered_next = False
            return heapq.heappop(self.ordered)[-1]
        self._is_ordered_next = True
        return self.unordered.popleft()


class FairSlots:
    """Grants at most `total` slots. The waiting key with the fewest slots is next.

    Within a key, requests with and without an `order` take turns. Of the first, the one with the lowest order is next.

    `limit` returns the maximum number of slots that a key may hold now. It is called whenever a slot is requested or
    released.
    """

    def __init__(self, total: int, limit: Callable[[str], int] | None = None) -> None:
        self._free = total
        self._limit = limit or (lambda _: total)
        self._held: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._waiting: dict[str, _WaitingRequests] = {}

    @asynccontextmanager
    async def slot(self, key: str, order: int = 0) -> AsyncIterator[None]:
        """Wait for a slot, and hold it until the `with` block ends. `order` is positive, or 0 for no order."""
        await self._acquire(key, order)
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

    async def _acquire(self, key: str, order: int) -> None:
        if key not in self._waiting and self._may_acquire(key):
            self._give_slot(key)
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, _WaitingRequests()).append(future, order)
        try:
            await future
        except asyncio.CancelledError:
            # This request may already have its slot: release it. Otherwise `_grant` skips this request.
            if not future.cancelled():
                self._release(key)
            raise

    def _may_acquire(self, key: str) -> bool:
        held_slots = self._held[key]
        return (
            self._free > 0
            and held_slots < MAX_SHARE_OF_FREE * self._free
            and held_slots - self._late[key] < self._limit(key)
        )

    def has_waiting(self, key: str) -> bool:
        """Whether a request of the key waits for a slot."""
        return key in self._waiting

    def is_idle(self, key: str) -> bool:
        """Whether the key neither holds a slot nor waits for one."""
        return key not in self._held and key not in self._waiting

    def _give_slot(self, key: str) -> None:
        self._free -= 1
        self._held[key] += 1

    def _release(self, key: str) -> None:
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key], self._late[key]
        self._grant_all()

    def _grant_all(self) -> None:
        # Of keys with equally few slots, `min` returns the first, which got its last slot the longest ago.
        while keys := [key for key in self._waiting if self._may_acquire(key)]:
            self._grant(min(keys, key=self._held.__getitem__))

    def _grant(self, key: str) -> None:
        """Give a slot to the first waiting request of this key, or skip it if it was cancelled."""
        waiting = self._waiting.pop(key)
        future = waiting.pop()
        if waiting:
            self._waiting[key] = waiting
        if not future.done():
            self._give_slot(key)
            future.set_result(None)

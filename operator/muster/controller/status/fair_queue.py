"""A queue that many namespaces share fairly: they take turns, and none can fill it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class FairQueue(Generic[T]):
    """At most `size` items. When it is full, a namespace may still use its equal part.

    Within a namespace, the item with the lowest rank is next, and within a rank the oldest.
    """

    size: int
    _waiting: dict[str, list[tuple[int, int, T]]] = field(default_factory=dict)
    _sequence: Iterator[int] = field(default_factory=itertools.count)
    _has_items: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, namespace: str, rank: int, item: T) -> bool:
        """Add an item; return whether there was space."""
        own = self._waiting.get(namespace, [])
        is_full = sum(map(len, self._waiting.values())) >= self.size
        if is_full and len(own) >= self.size // len({*self._waiting, namespace}):
            return False
        heapq.heappush(own, (rank, next(self._sequence), item))
        self._waiting[namespace] = own
        self._has_items.set()
        return True

    async def get(self) -> T:
        """Wait for the next item."""
        while not self._waiting:
            self._has_items.clear()
            await self._has_items.wait()
        namespace = next(iter(self._waiting))
        own = self._waiting.pop(namespace)
        _, _, item = heapq.heappop(own)
        if own:
            self._waiting[namespace] = own
        return item

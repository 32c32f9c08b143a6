"""A queue that many namespaces share fairly: they take turns, and no namespace can fill it."""

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
    """A queue of at most `size` items. When it is full, a namespace may still use its equal share.

    Within a namespace, the item with the lowest priority number is next, and among equal priorities the oldest.
    """

    size: int
    _queues: dict[str, list[tuple[int, int, T]]] = field(default_factory=dict)
    _sequence: Iterator[int] = field(default_factory=itertools.count)
    _has_items: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, namespace: str, priority: int, item: T) -> bool:
        """Add an item; return False if the queue has no space for it."""
        items = self._queues.get(namespace, [])
        is_full = sum(map(len, self._queues.values())) >= self.size
        if is_full and len(items) >= self.size // len({*self._queues, namespace}):
            return False
        heapq.heappush(items, (priority, next(self._sequence), item))
        self._queues[namespace] = items
        self._has_items.set()
        return True

    async def get(self) -> T:
        """Wait for the next item."""
        while not self._queues:
            self._has_items.clear()
            await self._has_items.wait()
        namespace = next(iter(self._queues))
        items = self._queues.pop(namespace)
        _, _, item = heapq.heappop(items)
        if items:
            self._queues[namespace] = items
        return item

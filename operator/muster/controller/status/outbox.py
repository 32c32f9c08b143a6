"""What waits to be sent for many namespaces: none of them fills it, and they take turns."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Outbox(Generic[T]):
    """`size` things at most; when it is full a namespace may still have its even part.

    Within a namespace what has the lower rank goes first, and of one rank what came first.
    """

    size: int
    _waiting: dict[str, list[tuple[int, int, T]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, namespace: str, rank: int, thing: T) -> bool:
        """Have it wait; whether there was place."""
        mine = self._waiting.get(namespace, [])
        is_full = sum(map(len, self._waiting.values())) >= self.size
        if is_full and len(mine) >= self.size // len({*self._waiting, namespace}):
            return False
        heapq.heappush(mine, (rank, next(self._numbers), thing))
        self._waiting[namespace] = mine
        self._came.set()
        return True

    async def get(self) -> T:
        """The next one, of the namespace whose turn it is."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        namespace = next(iter(self._waiting))
        mine = self._waiting.pop(namespace)
        _, _, thing = heapq.heappop(mine)
        if mine:
            self._waiting[namespace] = mine
        return thing

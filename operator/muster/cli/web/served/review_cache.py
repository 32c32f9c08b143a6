"""Answers that are kept for seconds."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass
class _Entry(Generic[Answer]):
    task: asyncio.Task[Answer]
    expires_at: float


@dataclass
class ReviewCache(Generic[Key, Answer]):
    """Keeps an answer for `seconds`, and at most `max_entries` of them. `clock` returns monotonic seconds.

    Requests for the same answer at the same time share one question. An error is not kept.
    """

    seconds: float
    max_entries: int
    clock: Callable[[], float]
    _entries: OrderedDict[Key, _Entry[Answer]] = field(default_factory=OrderedDict)

    def __contains__(self, key: Key) -> bool:
        entry = self._entries.get(key)
        return entry is not None and self.clock() < entry.expires_at

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: Key, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer; `ask` for it if none is kept. Raises what `ask` raises."""
        if key not in self:
            # The time counts from the question: what changes afterwards is seen in time.
            task = asyncio.create_task(_await(ask))
            self._entries[key] = _Entry(task, self.clock() + self.seconds)
            self._entries.move_to_end(key)
            if len(self._entries) > self.max_entries:
                self._entries.popitem(last=False)
        entry = self._entries[key]
        try:
            # A request that ends must not cancel the question of others.
            return await asyncio.shield(entry.task)
        except Exception:
            if self._entries.get(key) is entry:
                del self._entries[key]
            raise


async def _await(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    return await ask()

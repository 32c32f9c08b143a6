"""Limit the memory of each namespace's objects in the operator. No I/O.

A namespace past its limit gets no more, and others are not affected. When all namespaces together reach the total
limit, each one still gets `floor`, so that an ordinary namespace always works.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """An object's size in bytes, and its namespace."""

    namespace: str
    weight: int


@dataclass
class MemoryShares:
    """Limits in bytes: for one namespace, for all together, and a namespace's guaranteed minimum. Thread-safe."""

    per_namespace: int
    total: int
    floor: int
    _reservations: dict[str, Share] = field(default_factory=dict)
    _used: Counter[str] = field(default_factory=Counter)
    _sum: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, key: str, share: Share, times: int = 1) -> bool:
        """Reserve memory for the object; return whether it fits. An earlier reservation is released in any case.

        `times` multiplies the limits.
        """
        with self._lock:
            self._give_back(key)
            used = self._used[share.namespace] + share.weight
            fits = used <= self.per_namespace * times and (
                self._sum + share.weight <= self.total * times or used <= self.floor
            )
            if fits:
                self._reservations[key] = share
                self._used[share.namespace] = used
                self._sum += share.weight
            elif not self._used[share.namespace]:
                del self._used[share.namespace]
            return fits

    def release(self, key: str) -> None:
        """Release the object's memory."""
        with self._lock:
            self._give_back(key)

    def used(self, namespace: str) -> int:
        """The bytes that the namespace's objects use."""
        with self._lock:
            return self._used.get(namespace, 0)

    def fits(self, share: Share) -> bool:
        """Whether `reserve` would accept a new object."""
        with self._lock:
            used = self._used.get(share.namespace, 0) + share.weight
            return used <= self.per_namespace and (self._sum + share.weight <= self.total or used <= self.floor)

    def keys(self) -> tuple[str, ...]:
        """The keys of all objects with reserved memory."""
        with self._lock:
            return tuple(self._reservations)

    def _give_back(self, key: str) -> None:
        before = self._reservations.pop(key, None)
        if before is None:
            return
        self._sum -= before.weight
        self._used[before.namespace] -= before.weight
        if self._used[before.namespace] <= 0:
            del self._used[before.namespace]

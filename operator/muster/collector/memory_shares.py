"""Limit the memory of each namespace's objects in the operator. No I/O.

Each namespace has a limit. When all namespaces together reach the total limit, each namespace still gets `floor`, so
that an ordinary namespace always works.
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
    """Limits in bytes: for one namespace, for all namespaces, and the guaranteed minimum of each. Thread-safe."""

    per_namespace: int
    total: int
    floor: int
    _reservations: dict[str, Share] = field(default_factory=dict)
    _used: Counter[str] = field(default_factory=Counter)
    _total_used: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, key: str, share: Share, times: int = 1) -> bool:
        """Reserve memory for the object; return whether it fits. Releases the earlier reservation in any case.

        `times` multiplies the limits.
        """
        with self._lock:
            self._release(key)
            used = self._used[share.namespace] + share.weight
            fits = used <= self.per_namespace * times and (
                self._total_used + share.weight <= self.total * times or used <= self.floor
            )
            if fits:
                self._reservations[key] = share
                self._used[share.namespace] = used
                self._total_used += share.weight
            elif not self._used[share.namespace]:
                del self._used[share.namespace]
            return fits

    def release(self, key: str) -> None:
        """Release the object's memory."""
        with self._lock:
            self._release(key)

    def used(self, namespace: str) -> int:
        """Return the bytes that the namespace's objects use."""
        with self._lock:
            return self._used.get(namespace, 0)

    def fits(self, share: Share) -> bool:
        """Whether `reserve` would accept a new object."""
        with self._lock:
            used = self._used.get(share.namespace, 0) + share.weight
            return used <= self.per_namespace and (self._total_used + share.weight <= self.total or used <= self.floor)

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all objects with reserved memory."""
        with self._lock:
            return tuple(self._reservations)

    def _release(self, key: str) -> None:
        reservation = self._reservations.pop(key, None)
        if reservation is None:
            return
        self._total_used -= reservation.weight
        self._used[reservation.namespace] -= reservation.weight
        if self._used[reservation.namespace] <= 0:
            del self._used[reservation.namespace]

"""Limit the memory of each namespace's objects in the operator. No I/O.

Each namespace has a limit. When all namespaces together reach the total limit, each namespace may still use the
guaranteed minimum, so that a few ordinary jobs always run.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ObjectSize:
    """An object's size in bytes, and its namespace."""

    namespace: str
    byte_count: int


@dataclass
class MemoryLimits:
    """Limits in bytes: for one namespace, for all namespaces, and the guaranteed minimum of each. Thread-safe."""

    per_namespace: int
    total: int
    guaranteed: int
    _reservations: dict[str, ObjectSize] = field(default_factory=dict)
    _used_bytes: Counter[str] = field(default_factory=Counter)
    _total_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, key: str, size: ObjectSize, limit_factor: int = 1) -> bool:
        """Reserve memory for the object; return whether it fits. Release its earlier reservation in any case.

        `limit_factor` multiplies the limits.
        """
        with self._lock:
            self._release(key)
            fits = self._fits(size, limit_factor)
            if fits:
                self._add(key, size)
            return fits

    def resize(self, key: str, size: ObjectSize) -> bool:
        """Reserve memory for the object's new size; return whether it fits. Otherwise its earlier reservation stays.

        A size that is not larger than the earlier one always fits, also if others use all memory now.
        """
        with self._lock:
            known = self._reservations.get(key)
            self._release(key)
            is_smaller = known is not None and size.namespace == known.namespace and size.byte_count <= known.byte_count
            fits = is_smaller or self._fits(size)
            reserved = size if fits else known
            if reserved is not None:
                self._add(key, reserved)
            return fits

    def release(self, key: str) -> None:
        """Release the object's memory."""
        with self._lock:
            self._release(key)

    def get_used(self, namespace: str) -> int:
        """Return the bytes that the namespace's objects use."""
        with self._lock:
            return self._used_bytes.get(namespace, 0)

    def fits(self, size: ObjectSize) -> bool:
        """Whether `reserve` would accept a new object."""
        with self._lock:
            return self._fits(size)

    def get_keys(self) -> tuple[str, ...]:
        """Return the keys of all objects with reserved memory."""
        with self._lock:
            return tuple(self._reservations)

    def _fits(self, size: ObjectSize, limit_factor: int = 1) -> bool:
        used_bytes = self._used_bytes.get(size.namespace, 0) + size.byte_count
        return used_bytes <= self.per_namespace * limit_factor and (
            self._total_bytes + size.byte_count <= self.total * limit_factor or used_bytes <= self.guaranteed
        )

    def _add(self, key: str, size: ObjectSize) -> None:
        self._reservations[key] = size
        self._used_bytes[size.namespace] += size.byte_count
        self._total_bytes += size.byte_count

    def _release(self, key: str) -> None:
        reservation = self._reservations.pop(key, None)
        if reservation is None:
            return
        self._total_bytes -= reservation.byte_count
        self._used_bytes[reservation.namespace] -= reservation.byte_count
        if self._used_bytes[reservation.namespace] <= 0:
            del self._used_bytes[reservation.namespace]

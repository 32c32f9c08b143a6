"""How much of the operator's memory each namespace's objects may take. No I/O.

A namespace that has used its share is refused more, and no other one notices. When all of them together have used
what there is, each still has `floor`: no number of full namespaces keeps an ordinary one out.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """What an object takes, in bytes, and whose share that is."""

    namespace: str
    weight: int


@dataclass
class MemoryShares:
    """Limits in bytes: of one namespace, of all together, and what a namespace has in any case.

    May be used from several threads.
    """

    per_namespace: int
    total: int
    floor: int
    _taken: dict[str, Share] = field(default_factory=dict)
    _used: Counter[str] = field(default_factory=Counter)
    _sum: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, share: Share, times: int = 1) -> bool:
        """Whether the object may be held; what it took before is given back in any case.

        `times` is by how many times the limit of the namespace may be exceeded.
        """
        with self._lock:
            self._give_back(key)
            used = self._used[share.namespace] + share.weight
            fits = used <= self.per_namespace * times and (
                self._sum + share.weight <= self.total * times or used <= self.floor
            )
            if fits:
                self._taken[key] = share
                self._used[share.namespace] = used
                self._sum += share.weight
            elif not self._used[share.namespace]:
                del self._used[share.namespace]
            return fits

    def give_back(self, key: str) -> None:
        """The object is held no longer."""
        with self._lock:
            self._give_back(key)

    def used(self, namespace: str) -> int:
        """What the namespace's objects take, in bytes."""
        with self._lock:
            return self._used.get(namespace, 0)

    def fits(self, share: Share) -> bool:
        """Whether `take` would let an object in that takes nothing yet."""
        with self._lock:
            used = self._used.get(share.namespace, 0) + share.weight
            return used <= self.per_namespace and (self._sum + share.weight <= self.total or used <= self.floor)

    def keys(self) -> tuple[str, ...]:
        """Of all objects that are held."""
        with self._lock:
            return tuple(self._taken)

    def _give_back(self, key: str) -> None:
        before = self._taken.pop(key, None)
        if before is None:
            return
        self._sum -= before.weight
        self._used[before.namespace] -= before.weight
        if self._used[before.namespace] <= 0:
            del self._used[before.namespace]

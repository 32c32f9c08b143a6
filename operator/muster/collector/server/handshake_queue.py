"""Schedule TLS handshakes: addresses take turns, so that no address can block the others."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from muster.collector.server.cpu_budgets import CpuBudgets

T = TypeVar("T", bound=Hashable)


@dataclass
class _Address(Generic[T]):
    # ordered sets: the oldest connection is first
    waiting: dict[T, None] = field(default_factory=dict)
    handshakes: dict[T, None] = field(default_factory=dict)

    @property
    def connection_count(self) -> int:
        return len(self.waiting) + len(self.handshakes)


@dataclass
class HandshakeQueue(Generic[T]):
    """The unauthenticated connections by address, which wait for their handshake or perform it.

    At most `max_handshakes` handshakes run, `max_per_address` of them from one address.
    """

    max_handshakes: int
    max_per_address: int
    cpu: CpuBudgets
    _addresses: OrderedDict[str, _Address[T]] = field(default_factory=OrderedDict)
    _waiting_count: int = 0
    _handshake_count: int = 0

    def __len__(self) -> int:
        return self._waiting_count + self._handshake_count

    @property
    def has_waiting(self) -> bool:
        """Whether a connection waits for its handshake."""
        return self._waiting_count > 0

    def count_connections(self, address: str) -> int:
        """Return the number of unauthenticated connections from this address."""
        entry = self._addresses.get(address)
        return 0 if entry is None else entry.connection_count

    def add(self, client: T, address: str) -> None:
        """Add a waiting connection."""
        self._addresses.setdefault(address, _Address()).waiting[client] = None
        self._waiting_count += 1

    def remove(self, client: T, address: str) -> None:
        """Remove a connection that is closed or authenticated."""
        entry = self._addresses[address]
        if client in entry.waiting:
            del entry.waiting[client]
            self._waiting_count -= 1
        else:
            del entry.handshakes[client]
            self._handshake_count -= 1
        if not entry.connection_count:
            del self._addresses[address]

    def take_next(self, now: float) -> T | None:
        """Return the connection whose handshake starts at `now` (monotonic seconds); None if no handshake may start."""
        if self._handshake_count >= self.max_handshakes or not self.cpu.may_start_any_handshake(now):
            return None
        for address, entry in self._addresses.items():
            if (
                entry.waiting
                and len(entry.handshakes) < self.max_per_address
                and self.cpu.may_start_handshake(address, now)
            ):
                client = next(iter(entry.waiting))
                del entry.waiting[client]
                entry.handshakes[client] = None
                self._waiting_count -= 1
                self._handshake_count += 1
                self._addresses.move_to_end(address)
                return client
        return None

    def find_connection_to_close(self, address: str) -> T | None:
        """Return the connection to close for a new one from `address`; None if no address has more connections."""
        busiest = max(self._addresses.values(), key=lambda entry: entry.connection_count, default=None)
        if busiest is None or busiest.connection_count <= self.count_connections(address):
            return None
        return next(iter(busiest.waiting or busiest.handshakes))

"""Share the collector's processor time fairly between pods, namespaces and unauthenticated connections. No I/O.

All amounts are seconds of processor time, and all times are seconds of one monotonic clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from muster.collector.server.limits import Rate, TokenBuckets

POD_RATE = Rate(per_second=0.03, burst=0.5)
"""The share of one pod. Reports of 128 ranks at the shortest heartbeat need less than 0.02 on a slow core."""

ADDRESS_RATE = Rate(per_second=0.01, burst=0.15)
"""The share of one address for unauthenticated connections. A TLS handshake costs 1 to 2 ms."""

UNAUTHENTICATED_RATE = Rate(per_second=0.25, burst=0.25)
"""The share of all unauthenticated connections: most of the core is left to authenticated agents."""

TOTAL_RATE = Rate(per_second=0.5, burst=0.5)
"""The share of all known pods; `burst` applies to one namespace. Reconciles use the other half of the core."""

MIN_WEIGHT = 16.0
"""The minimum weight of a namespace, in pods, so that small jobs get processor time beside large jobs."""

CUT_OFF_DEBT = 0.5
"""The debt in seconds at which a pod that ignores Retry-After loses its connection."""

ADDRESS_CUT_OFF_DEBT = 0.15
"""The debt in seconds at which the collector closes an address's new connections at once.

The debt does not grow further, because another pod may get the address.
"""

MAX_PODS = 50_000
MAX_ADDRESSES = 10_000

_REFILL_SECONDS = 0.02
_NEGLIGIBLE_SECONDS = 1e-9


@dataclass
class _Share:
    balance: float
    weight: float


@dataclass
class FairShares:
    """Divides `rate` among keys by their `weight`. A share that one key doesn't use goes to the other keys.

    It stores only keys whose balance is below their burst.
    """

    rate: Rate
    weight: Callable[[str], float]
    _shares: dict[str, _Share] = field(default_factory=dict)
    _filled_at: float | None = None

    def get_balance(self, key: str, now: float) -> float:
        """Return the seconds that the key may use now. With a negative balance, the key has to wait."""
        self._refill(now)
        share = self._shares.get(key)
        return self.rate.burst if share is None else share.balance

    def charge(self, key: str, seconds: float, now: float) -> None:
        """Reduce the key's balance."""
        self._refill(now)
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = _Share(self.rate.burst, 0.0)
        share.weight = max(MIN_WEIGHT, self.weight(key))
        share.balance -= seconds

    def get_wait_seconds(self, key: str, now: float) -> float:
        """Return the time until the key's balance is positive, in seconds."""
        balance = self.get_balance(key, now)
        if balance > 0.0:
            return 0.0
        weight, total = self._shares[key].weight, sum(share.weight for share in self._shares.values())
        return -balance * total / weight / self.rate.per_second

    def _refill(self, now: float) -> None:
        filled_at = now if self._filled_at is None else self._filled_at
        if self._filled_at is not None and now - filled_at < _REFILL_SECONDS:
            return
        self._filled_at = now
        remaining = self.rate.per_second * (now - filled_at)
        # each round fills at least one share, or distributes the whole remainder
        while remaining > _NEGLIGIBLE_SECONDS and self._shares:
            remaining = self._distribute(remaining)

    def _distribute(self, amount: float) -> float:
        total = sum(share.weight for share in self._shares.values())
        remaining = 0.0
        for key, share in list(self._shares.items()):
            share.balance += amount * share.weight / total
            if share.balance >= self.rate.burst:
                remaining += share.balance - self.rate.burst
                del self._shares[key]
        return remaining


class CpuBudgets:
    """The processor time of pods, of their namespaces, and of unauthenticated connections."""

    def __init__(self, connected_pods: Callable[[str], float]) -> None:
        self._pods = TokenBuckets(POD_RATE, MAX_PODS)
        self._namespaces = FairShares(TOTAL_RATE, connected_pods)
        self._addresses = TokenBuckets(ADDRESS_RATE, MAX_ADDRESSES)
        self._unauthenticated = TokenBuckets(UNAUTHENTICATED_RATE, 1)

    def get_wait_seconds(self, namespace: str, pod_uid: str, now: float) -> float:
        """Return the seconds until this pod's next request may be handled."""
        return max(self._pods.get_wait_seconds(pod_uid, now), self._namespaces.get_wait_seconds(namespace, now))

    def is_cut_off(self, pod_uid: str, now: float) -> bool:
        """Whether the pod has ignored Retry-After for too long."""
        return self._pods.get_balance(pod_uid, now) < -CUT_OFF_DEBT

    def get_namespace_balance(self, namespace: str, now: float) -> float:
        """Return the namespace's balance: the namespace with the highest balance is next."""
        return self._namespaces.get_balance(namespace, now)

    def charge_pod(self, namespace: str, pod_uid: str, seconds: float, now: float) -> None:
        """Charge a pod and its namespace."""
        self._pods.charge(pod_uid, seconds, now)
        self._namespaces.charge(namespace, seconds, now)

    def charge_unauthenticated(self, address: str, seconds: float, now: float) -> None:
        """Charge an address. Negative seconds are a refund."""
        self._addresses.charge(address, seconds, now)
        self._unauthenticated.charge("", seconds, now)

    def charge_accept(self, address: str, seconds: float, now: float) -> None:
        """Charge an address for accepting or closing its connection. Negative seconds are a refund.

        The budget that all addresses share does not pay for it. Otherwise a flood of connections from one address would
        delay the handshakes of all others.
        """
        if not self.is_address_cut_off(address, now):
            self._addresses.charge(address, seconds, now)

    def is_address_cut_off(self, address: str, now: float) -> bool:
        """Whether the address has opened so many connections that its new ones are closed at once."""
        return self._addresses.get_balance(address, now) < -ADDRESS_CUT_OFF_DEBT

    def may_start_any_handshake(self, now: float) -> bool:
        """Whether any handshake may start now."""
        return self._unauthenticated.get_balance("", now) > 0.0

    def may_start_handshake(self, address: str, now: float) -> bool:
        """Whether this address may start another handshake now."""
        return self._addresses.get_balance(address, now) > 0.0

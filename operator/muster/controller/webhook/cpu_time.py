"""Limit the processor time of the webhook, which runs in the same process as the jobs' controllers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CpuLimit:
    """A limit: the fraction of a core in the long run, and the seconds that an idle user may save for a burst."""

    core_fraction: float
    burst_seconds: float


TOTAL_LIMIT = CpuLimit(core_fraction=0.3, burst_seconds=2.0)
"""The limit of all requests. Beyond it, jobs are stored without a review, and the operator validates them later."""

ADDRESS_LIMIT = CpuLimit(core_fraction=0.25, burst_seconds=1.5)
"""The limit of one address. It is high, because one API server may send the requests of all users."""

NAMESPACE_LIMIT = CpuLimit(core_fraction=0.05, burst_seconds=0.5)
"""The limit of one namespace: enough to apply a hundred jobs at once."""

MAX_KEYS = 4096


@dataclass
class _Account:
    seconds: float
    updated_at: float


@dataclass
class _Accounts:
    limit: CpuLimit
    _accounts: OrderedDict[str, _Account] = field(default_factory=OrderedDict)

    def get_balance(self, key: str, now: float) -> float:
        account = self._accounts.get(key)
        if account is None:
            return self.limit.burst_seconds
        earned_seconds = max(0.0, now - account.updated_at) * self.limit.core_fraction
        account.seconds, account.updated_at = min(self.limit.burst_seconds, account.seconds + earned_seconds), now
        return account.seconds

    def charge(self, key: str, seconds: float, now: float) -> None:
        self._accounts[key] = _Account(self.get_balance(key, now) - seconds, now)
        self._accounts.move_to_end(key)
        if len(self._accounts) > MAX_KEYS:
            self._accounts.popitem(last=False)


@dataclass
class WebhookCpuTime:
    """The processor time of all requests. `clock` returns monotonic seconds."""

    clock: Callable[[], float]
    _total: _Accounts = field(default_factory=lambda: _Accounts(TOTAL_LIMIT))
    _addresses: _Accounts = field(default_factory=lambda: _Accounts(ADDRESS_LIMIT))
    _namespaces: _Accounts = field(default_factory=lambda: _Accounts(NAMESPACE_LIMIT))

    def may_read(self, address: str) -> bool:
        """Whether a request from this address may be read."""
        now = self.clock()
        return self._total.get_balance("", now) > 0.0 and self._addresses.get_balance(address, now) > 0.0

    def may_review(self, namespace: str) -> bool:
        """Whether a job of this namespace may be reviewed."""
        return self._namespaces.get_balance(namespace, self.clock()) > 0.0

    def charge(self, address: str, namespace: str, seconds: float) -> None:
        """Charge a request's processor time; `namespace` is "" for a malformed request."""
        now = self.clock()
        self._total.charge("", seconds, now)
        self._addresses.charge(address, seconds, now)
        if namespace:
            self._namespaces.charge(namespace, seconds, now)

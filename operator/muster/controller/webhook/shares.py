"""Limit the webhook's processor time: the webhook shares the process with the jobs' controllers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """`of_core` of a core in the long run; an idle user saves up at most `saved` seconds of processor time."""

    of_core: float
    saved: float


TOTAL = Share(of_core=0.3, saved=2.0)
"""All requests. Past the limit, jobs are stored without a review, and the operator validates them later."""

ADDRESS = Share(of_core=0.25, saved=1.5)
"""One address. An API server sends the requests of all users."""

NAMESPACE = Share(of_core=0.05, saved=0.5)
"""The jobs of one namespace: enough to apply a hundred at once."""

MAX_KEYS = 4096


@dataclass
class _Account:
    seconds: float
    at: float


@dataclass
class _Accounts:
    share: Share
    _accounts: OrderedDict[str, _Account] = field(default_factory=OrderedDict)

    def balance(self, key: str, now: float) -> float:
        account = self._accounts.get(key)
        if account is None:
            return self.share.saved
        earned = max(0.0, now - account.at) * self.share.of_core
        account.seconds, account.at = min(self.share.saved, account.seconds + earned), now
        return account.seconds

    def charge(self, key: str, seconds: float, now: float) -> None:
        self._accounts[key] = _Account(self.balance(key, now) - seconds, now)
        self._accounts.move_to_end(key)
        if len(self._accounts) > MAX_KEYS:
            self._accounts.popitem(last=False)


@dataclass
class WebhookShares:
    """The accounts of all requests. `clock` returns monotonic seconds."""

    clock: Callable[[], float]
    _total: _Accounts = field(default_factory=lambda: _Accounts(TOTAL))
    _addresses: _Accounts = field(default_factory=lambda: _Accounts(ADDRESS))
    _namespaces: _Accounts = field(default_factory=lambda: _Accounts(NAMESPACE))

    def may_ask(self, address: str) -> bool:
        """Whether a request from this address may be read."""
        now = self.clock()
        return self._total.balance("", now) > 0.0 and self._addresses.balance(address, now) > 0.0

    def may_have_looked_at(self, namespace: str) -> bool:
        """Whether a job of this namespace may be reviewed."""
        return self._namespaces.balance(namespace, self.clock()) > 0.0

    def charge(self, address: str, namespace: str, seconds: float) -> None:
        """Charge a request's processor time; `namespace` is "" for a malformed request."""
        now = self.clock()
        self._total.charge("", seconds, now)
        self._addresses.charge(address, seconds, now)
        if namespace:
            self._namespaces.charge(namespace, seconds, now)

"""Who may use how much of the webhook's processor time: it shares the process with everything that runs jobs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """`of_core` in the long run, and so many seconds of processor time that were saved up while no request came."""

    of_core: float
    saved: float


TOTAL = Share(of_core=0.3, saved=2.0)
"""All requests. What is past it is stored without a look, and looked at by the operator as ever."""

ADDRESS = Share(of_core=0.25, saved=1.5)
"""One address: an API server's requests are those of all its users."""

NAMESPACE = Share(of_core=0.05, saved=0.5)
"""The jobs of one namespace: a hundred of them applied together."""

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
    """`clock` gives seconds that only go forward."""

    clock: Callable[[], float]
    _total: _Accounts = field(default_factory=lambda: _Accounts(TOTAL))
    _addresses: _Accounts = field(default_factory=lambda: _Accounts(ADDRESS))
    _namespaces: _Accounts = field(default_factory=lambda: _Accounts(NAMESPACE))

    def may_ask(self, address: str) -> bool:
        """Whether a request of this address is read at all."""
        now = self.clock()
        return self._total.balance("", now) > 0.0 and self._addresses.balance(address, now) > 0.0

    def may_have_looked_at(self, namespace: str) -> bool:
        """Whether a job of this namespace is judged."""
        return self._namespaces.balance(namespace, self.clock()) > 0.0

    def charge(self, address: str, namespace: str, seconds: float) -> None:
        """So much processor time was used for a request; `namespace` is "" where it could not be read."""
        now = self.clock()
        self._total.charge("", seconds, now)
        self._addresses.charge(address, seconds, now)
        if namespace:
            self._namespaces.charge(namespace, seconds, now)

"""Limit the processor time of the webhook, which runs in the same process as the jobs' controllers."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from muster.collector.server.limits import Rate, TokenBuckets

TOTAL_LIMIT = Rate(per_second=0.3, burst=2.0)
"""The limit of all requests, in seconds of processor time: 0.3 of a core in the long run.

Beyond it, jobs are stored without a review, and the operator validates them later; jobs with a template are refused.
"""

ADDRESS_LIMIT = Rate(per_second=0.25, burst=1.5)
"""The limit of one address. It is high, because one API server may send the requests of all users."""

NAMESPACE_LIMIT = Rate(per_second=0.05, burst=0.5)
"""The limit of one namespace: enough to apply a hundred jobs at once."""

MAX_KEYS = 4096

T = TypeVar("T")


@dataclass
class WebhookCpuTime:
    """The processor time of all requests. `clock` returns monotonic seconds."""

    clock: Callable[[], float]
    _total: TokenBuckets = field(default_factory=lambda: TokenBuckets(TOTAL_LIMIT, MAX_KEYS))
    _addresses: TokenBuckets = field(default_factory=lambda: TokenBuckets(ADDRESS_LIMIT, MAX_KEYS))
    _namespaces: TokenBuckets = field(default_factory=lambda: TokenBuckets(NAMESPACE_LIMIT, MAX_KEYS))

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


@dataclass(frozen=True)
class ChargedCoroutine(Generic[T]):
    """An awaitable that runs `work`, and calls `charge` with the processor time of each of its steps, in seconds.

    While it waits, as for an answer of the API server, other reviews use the same thread: their time is not its own.
    """

    work: Coroutine[Any, Any, T]
    charge: Callable[[float], None]

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self.work.send, None)
        while True:
            started_at = time.thread_time()
            try:
                awaited = step()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.charge(time.thread_time() - started_at)
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - raised in the coroutine
                step = partial(self.work.throw, error)
            else:
                step = partial(self.work.send, None)

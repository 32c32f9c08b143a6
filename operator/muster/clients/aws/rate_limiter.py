"""Limit the rate of one kind of request, in one account and region."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from muster.clients.aws.adaptive_rate import AdaptiveRate
from muster.clients.aws.quotas import Quota
from muster.objects.aws.errors import Throttled


class RateLimiter:
    """Grants requests in the order of their arrival. Only one event loop may use this."""

    def __init__(self, quota: Quota) -> None:
        self._rate = AdaptiveRate(quota.per_second)
        self._slots = asyncio.Semaphore(quota.max_concurrent)
        self._first_in_queue = asyncio.Lock()
        self._is_serial = quota.max_concurrent == 1

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a request may be sent. If the `with` block raises `Throttled`, later requests wait longer."""
        clock = asyncio.get_running_loop().time
        async with self._slots:
            async with self._first_in_queue:
                # Another request may be throttled meanwhile, which prolongs the wait.
                while (seconds := self._rate.compute_wait(clock())) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(seconds)
                sent_at = clock()
                self._rate.start_interval(sent_at)
            try:
                yield
            except Throttled:
                self._rate.record_throttling(sent_at)
                raise
            else:
                self._rate.record_success()
            finally:
                if self._is_serial:
                    self._rate.start_interval(clock())

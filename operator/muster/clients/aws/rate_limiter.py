"""Rate limit for requests of one kind, in one account and region."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from muster.clients.aws.adaptive_rate import AdaptiveRate
from muster.clients.aws.quotas import Quota
from muster.objects.aws.errors import Throttled


class RateLimiter:
    """Grants requests in the order of their arrival. Belongs to one event loop."""

    def __init__(self, quota: Quota) -> None:
        self._pace = AdaptiveRate(quota.per_second)
        self._free = asyncio.Semaphore(quota.at_once)
        self._first = asyncio.Lock()
        self._alone = quota.at_once == 1

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a request may be sent; if the block raises `Throttled`, later requests wait longer."""
        clock = asyncio.get_running_loop().time
        async with self._free:
            async with self._first:
                # A throttled request during the wait may prolong it.
                while (seconds := self._pace.wait(clock())) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(seconds)
                sent = clock()
                self._pace.take(sent)
            try:
                yield
            except Throttled:
                self._pace.refused(sent)
                raise
            else:
                self._pace.accepted()
            finally:
                if self._alone:
                    self._pace.take(clock())

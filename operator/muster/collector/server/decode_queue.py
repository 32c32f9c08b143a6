"""Schedule the decoding of reports. Each iteration of the event loop decodes a few, and namespaces take turns."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

ITERATION_SECONDS = 0.02
"""The processor time for reports in one iteration of the event loop. A single large report may take more.

Reports of a hundred failed ranks arrive together, and should not wait until the first of these jobs have stopped.
"""


@dataclass
class DecodeQueue:
    """The waiting reports. The namespace with the highest `balance` of processor time is next."""

    balance: Callable[[str], float]
    _futures: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    _used_seconds: float = 0.0
    _is_reset_scheduled: bool = False
    _is_busy: bool = False

    @asynccontextmanager
    async def wait_for_turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a turn. The `with` block must not await anything."""
        if self._is_busy or self._futures or self._used_seconds >= ITERATION_SECONDS:
            await self._wait(namespace)
        self._is_busy = True
        started_at = time.thread_time()
        try:
            yield
        finally:
            self._used_seconds += time.thread_time() - started_at
            self._is_busy = False
            self._schedule_next()

    async def _wait(self, namespace: str) -> None:
        future = asyncio.get_running_loop().create_future()
        self._futures.setdefault(namespace, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                # the turn was granted before the cancellation
                self._is_busy = False
                self._schedule_next()
            raise

    def _schedule_next(self) -> None:
        if self._used_seconds < ITERATION_SECONDS:
            self._call_next()
        if not self._is_reset_scheduled:
            self._is_reset_scheduled = True
            asyncio.get_running_loop().call_soon(self._reset)

    def _reset(self) -> None:
        self._is_reset_scheduled = False
        self._used_seconds = 0.0
        if not self._is_busy:
            self._call_next()

    def _call_next(self) -> None:
        while self._futures:
            namespace = max(self._futures, key=self.balance)
            futures = self._futures[namespace]
            future = futures.popleft()
            if not futures:
                del self._futures[namespace]
            if not future.done():
                self._is_busy = True
                future.set_result(None)
                return

"""Schedule the decoding of reports: a few in each iteration of the event loop, least usage first."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

TURN_SECONDS = 0.004
"""Processor time for reports in one iteration of the event loop. A single report may take more."""


@dataclass
class DecodeQueue:
    """`balance` returns a namespace's remaining time: the namespace with the highest one is next."""

    balance: Callable[[str], float]
    _waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    _spent: float = 0.0
    _is_reset_due: bool = False
    _is_busy: bool = False

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for a turn. The block must not await anything."""
        if self._is_busy or self._waiting or self._spent >= TURN_SECONDS:
            await self._wait(namespace)
        self._is_busy = True
        began = time.thread_time()
        try:
            yield
        finally:
            self._spent += time.thread_time() - began
            self._is_busy = False
            self._continue()

    async def _wait(self, namespace: str) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                # the turn was granted before the cancellation
                self._is_busy = False
                self._continue()
            raise

    def _continue(self) -> None:
        if self._spent < TURN_SECONDS:
            self._call_next()
        if not self._is_reset_due:
            self._is_reset_due = True
            asyncio.get_running_loop().call_soon(self._reset)

    def _reset(self) -> None:
        self._is_reset_due = False
        self._spent = 0.0
        if not self._is_busy:
            self._call_next()

    def _call_next(self) -> None:
        while self._waiting:
            namespace = max(self._waiting, key=self.balance)
            futures = self._waiting[namespace]
            future = futures.popleft()
            if not futures:
                del self._waiting[namespace]
            if not future.done():
                self._is_busy = True
                future.set_result(None)
                return

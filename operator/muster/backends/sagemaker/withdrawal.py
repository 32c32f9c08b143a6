"""Cancel work for a resource that has been deleted, or whose spec has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WorkWithdrawn(Exception):
    """The job no longer needs this work."""


class Withdrawal:
    """Guards one piece of work. Belongs to one event loop."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """Cancel the guarded work, now or when it starts."""
        self._is_withdrawn = True
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Run the block as work that `withdraw` cancels. Raises `WorkWithdrawn` then."""
        if self._is_withdrawn:
            raise WorkWithdrawn
        try:
            async with asyncio.timeout(None) as self._limit:
                yield
        except TimeoutError:
            if self._is_withdrawn:
                raise WorkWithdrawn from None
            raise
        finally:
            self._limit = None

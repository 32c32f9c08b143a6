"""Cancel work when the job's resource is deleted or its spec changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WorkWithdrawn(Exception):
    """The job no longer needs this work."""


class Withdrawal:
    """Cancels a block of code. Only one event loop may use this."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """Cancel the guarded block, now or when it starts."""
        self._is_withdrawn = True
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Run the `with` block until `withdraw` cancels it. Raises `WorkWithdrawn` then."""
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

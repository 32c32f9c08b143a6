"""What is done for a version of a resource, given up once the resource is deleted or asks for something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Withdrawn(Exception):
    """What was under way is no longer wanted."""


class Withdrawal:
    """Belongs to one event loop, and guards one piece of work."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """End the guarded work, now or as soon as it begins."""
        self._is_withdrawn = True
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """The work is cancelled when it is withdrawn. Raises `Withdrawn` then."""
        if self._is_withdrawn:
            raise Withdrawn
        try:
            async with asyncio.timeout(None) as self._limit:
                yield
        except TimeoutError:
            if self._is_withdrawn:
                raise Withdrawn from None
            raise
        finally:
            self._limit = None

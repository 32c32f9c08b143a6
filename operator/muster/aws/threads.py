"""boto3 waits where it stands: it does so in threads, of which there are not many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_THREADS = 16
"""Requests under way at once, of all places: what quotas let through takes less, transfers to and from S3 the rest."""

_Result = TypeVar("_Result")


class Threads:
    """Runs functions that wait. One that is no longer waited for goes on until it is answered, or gives up."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="aws")

    async def run(self, function: Callable[[], _Result]) -> _Result:
        """What it returns or raises."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

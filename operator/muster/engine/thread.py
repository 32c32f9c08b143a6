"""Run long pure computations in a thread, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

report_cpu_seconds: ContextVar[Callable[[float], None] | None] = ContextVar("charge", default=None)
"""The function that adds the CPU time of a computation in the thread to its task's own."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apart")
"""A single thread: because of the GIL, more threads would only delay the event loop."""


_QUEUES: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""A lock for each namespace: one task of each namespace waits for the thread, so that namespaces take turns."""


async def run_in_thread(namespace: str, work: Callable[[], T]) -> T:
    """Return the result of `work`, for a job of the namespace.

    `work` must be pure and must not depend on anything that the event loop changes.
    """
    queue = _QUEUES.setdefault(namespace, asyncio.Lock())
    async with queue:
        result, seconds = await asyncio.get_running_loop().run_in_executor(_THREAD, _measure, work)
    add_seconds = report_cpu_seconds.get()
    if add_seconds is not None:
        add_seconds(seconds)
    return result


def _measure(work: Callable[[], T]) -> tuple[T, float]:
    started_at = time.thread_time()
    result = work()
    return result, time.thread_time() - started_at

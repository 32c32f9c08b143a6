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

report_cpu_seconds: ContextVar[Callable[[float], None] | None] = ContextVar("report_cpu_seconds", default=None)
"""The function that adds the CPU time of a computation in the thread to the CPU time of its task."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="muster-compute")
"""Use a single thread, because more threads would only delay the event loop: Python runs one at a time (GIL)."""


_QUEUES: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""A lock for each namespace. Only one task of each namespace waits for the thread, so that namespaces take turns."""


async def run_in_thread(namespace: str, work: Callable[[], T]) -> T:
    """Return the result of `work`, for a job of the namespace.

    `work` must be pure and must not depend on anything that the event loop changes.
    """
    queue = _QUEUES.setdefault(namespace, asyncio.Lock())
    async with queue:
        result, seconds = await asyncio.get_running_loop().run_in_executor(_THREAD, _measure_cpu_seconds, work)
    add_seconds = report_cpu_seconds.get()
    if add_seconds is not None:
        add_seconds(seconds)
    return result


def _measure_cpu_seconds(work: Callable[[], T]) -> tuple[T, float]:
    started_at = time.thread_time()
    result = work()
    return result, time.thread_time() - started_at

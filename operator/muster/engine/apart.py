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

charge: ContextVar[Callable[[float], None] | None] = ContextVar("charge", default=None)
"""Called with the processor time that a task used in the thread, which counts as the task's own."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apart")
"""A single worker: because of the GIL, more threads would only delay the event loop."""


_QUEUES: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""A lock per namespace: only the first task of each waits for the thread, so that namespaces take turns."""


async def apart(namespace: str, work: Callable[[], T]) -> T:
    """Return the result of `work`, for a job of the namespace.

    `work` must be pure and must not depend on anything that the event loop changes.
    """
    queue = _QUEUES.setdefault(namespace, asyncio.Lock())
    async with queue:
        result, seconds = await asyncio.get_running_loop().run_in_executor(_THREAD, _measure, work)
    add_seconds = charge.get()
    if add_seconds is not None:
        add_seconds(seconds)
    return result


def _measure(work: Callable[[], T]) -> tuple[T, float]:
    started_at = time.thread_time()
    result = work()
    return result, time.thread_time() - started_at

"""Long computations beside the event loop: pure ones, in a thread, so that the loop goes on meanwhile."""

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
"""Gets the processor time that a task's work took in a thread: it counts as the task's own."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apart")
"""One: Python computes in one thread at a time, and each further one would keep the event loop waiting longer."""


_QUEUES: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""One for each namespace that has work: only its first one waits for the thread, so that namespaces take turns."""


async def apart(namespace: str, work: Callable[[], T]) -> T:
    """What `work`, for a job of the namespace, gives.

    It must be pure: whatever the loop changes meanwhile, it must not see.
    """
    queue = _QUEUES.setdefault(namespace, asyncio.Lock())
    async with queue:
        result, seconds = await asyncio.get_running_loop().run_in_executor(_THREAD, _timed, work)
    tell = charge.get()
    if tell is not None:
        tell(seconds)
    return result


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    result = work()
    return result, time.thread_time() - began

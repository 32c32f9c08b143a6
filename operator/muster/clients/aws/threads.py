"""Run blocking calls of boto3 in daemon threads, which don't delay the end of the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

MAX_THREADS = 16
"""The maximum number of threads: more concurrent requests than quotas allow at usual response times."""

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


class ThreadPool:
    """Runs blocking functions in threads. A cancelled function continues until it returns."""

    def __init__(self) -> None:
        self._pool = _DaemonExecutor()

    async def run(self, function: Callable[[], _Result]) -> _Result:
        """Run the function; return or raise its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Start no more functions. The process doesn't wait for running functions at its end."""
        self._pool.shutdown()


async def run_in_new_thread(function: Callable[[], _Result]) -> _Result:
    """Run the function in a new thread, so that it can't delay other functions."""
    threads = ThreadPool()
    try:
        return await threads.run(function)
    finally:
        threads.close()


class _DaemonExecutor(Executor):
    """Like ThreadPoolExecutor, but with daemon threads, for which Python doesn't wait at exit."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads = 0

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        future: Future[_Result] = Future()
        self._work.put(partial(_run_for, future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False) and self._threads < MAX_THREADS:
            self._threads += 1
            threading.Thread(target=self._serve, name=f"muster-{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002
        while cancel_futures:
            try:
                self._work.get_nowait()
            except Empty:
                break
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            set_result = work()
            # Mark this thread as idle before the caller can submit its next function.
            self._idle.release()
            set_result()


def _run_for(future: Future[_Result], function: Callable[[], _Result]) -> Callable[[], None]:
    """Run the function; return a callback that sets the future's result."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
        return partial(future.set_exception, error)
    return partial(future.set_result, result)

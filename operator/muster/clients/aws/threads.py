"""boto3 waits where it stands: it does so in threads, of which there are not many, and which hold no process back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

MAX_THREADS = 16
"""Requests under way at once, of all places: more than quotas let through at usual answer times."""

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


class Threads:
    """Runs functions that wait. One that is no longer waited for goes on until it is answered, or gives up."""

    def __init__(self) -> None:
        self._pool = _Daemons()

    async def run(self, function: Callable[[], _Result]) -> _Result:
        """What it returns or raises."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Begin nothing more. What is under way goes on, but the process need not wait for it to end."""
        self._pool.shutdown()


async def in_own_thread(function: Callable[[], _Result]) -> _Result:
    """What it returns or raises. It keeps no others waiting that wait for a thread, however long it takes."""
    threads = Threads()
    try:
        return await threads.run(function)
    finally:
        threads.close()


class _Daemons(Executor):
    """As ThreadPoolExecutor, whose threads Python waits for before it ends: a service that is silent takes its time."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads = 0

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        future: Future[_Result] = Future()
        self._work.put(partial(_carry_out, future, partial(fn, *args, **kwargs)))
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
            tell = work()
            # The caller asks again at once, and needs no other thread for it.
            self._idle.release()
            tell()


def _carry_out(future: Future[_Result], function: Callable[[], _Result]) -> Callable[[], None]:
    """Do the work; the result goes to the caller that waits for it."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - the caller that waits gets it
        return partial(future.set_exception, error)
    return partial(future.set_result, result)

"""Measure a task's processor time, and let the tasks of an event loop take turns."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.engine.apart import charge

T = TypeVar("T")


class MeteredCoroutine(Generic[T]):
    """An awaitable that runs `work`. Each step waits for its turn in `queue`; `seconds` adds up their processor time.

    The sum includes work that the task runs in other threads. It excludes other tasks, also those that this task
    starts.
    """

    def __init__(self, work: Coroutine[Any, Any, T], queue: ProcessorQueue, namespace: str) -> None:
        self.seconds = 0.0
        self._work = work
        self._queue = queue
        self._namespace = namespace
        self._thread_seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        charge.set(self._add)
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            ticket = self._queue.acquire(self._namespace)
            try:
                yield from ticket
            except BaseException as thrown:  # noqa: BLE001 - passed on to the work at once
                step = partial(self._work.throw, thrown)
            began = self._queue.clock()
            took = 0.0
            try:
                awaited = step()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                took = self._queue.clock() - began + self._thread_seconds
                self._thread_seconds = 0.0
                self.seconds += took
                self._queue.release(ticket, self._namespace, took)
            try:
                yield awaited
            except BaseException as thrown:  # noqa: BLE001 - passed on to the work
                step = partial(self._work.throw, thrown)
            else:
                step = partial(self._work.send, None)

    def _add(self, seconds: float) -> None:
        self._thread_seconds += seconds

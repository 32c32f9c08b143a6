"""Measure a task's processor time, and let the tasks of an event loop take turns."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from muster.controller.jobs.processor_queue import Place, ProcessorQueue
from muster.engine.thread import report_cpu_seconds

T = TypeVar("T")


class MeteredCoroutine(Generic[T]):
    """An awaitable that runs `work`, and sums up its processor time in `seconds`.

    Each step waits in `queue` for its turn, at `place`. The sum includes the task's work in other threads,
    but not the work of tasks that it starts.
    """

    def __init__(self, work: Coroutine[Any, Any, T], queue: ProcessorQueue, namespace: str) -> None:
        self.seconds = 0.0
        self.place = Place()
        self._work = work
        self._queue = queue
        self._namespace = namespace
        self._thread_seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        report_cpu_seconds.set(self._add_thread_seconds)
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            ticket = self._queue.acquire(self._namespace, self.place)
            try:
                yield from ticket
            except BaseException as error:  # noqa: BLE001 - raised in the coroutine
                step = partial(self._work.throw, error)
            started_at = self._queue.clock()
            try:
                awaited = step()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                used_seconds = self._queue.clock() - started_at + self._thread_seconds
                self._thread_seconds = 0.0
                self.seconds += used_seconds
                self._queue.release(ticket, self._namespace, used_seconds)
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - raised in the coroutine
                step = partial(self._work.throw, error)
            else:
                step = partial(self._work.send, None)

    def _add_thread_seconds(self, seconds: float) -> None:
        self._thread_seconds += seconds

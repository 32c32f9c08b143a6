"""How much processor time one of a loop's many tasks takes, and when it may take it."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.engine.apart import charge

T = TypeVar("T")


class Metered(Generic[T]):
    """An awaitable that runs `work`, each step of it in its turn in `queue`, and adds up in `seconds` what they take.

    What it computes apart is counted; what others do meanwhile isn't, nor are tasks that it starts.
    """

    def __init__(self, work: Coroutine[Any, Any, T], queue: ProcessorQueue, namespace: str) -> None:
        self.seconds = 0.0
        self._work = work
        self._queue = queue
        self._namespace = namespace
        self._apart = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        charge.set(self._add)
        go_on: Callable[[], Any] = partial(self._work.send, None)
        while True:
            ticket = self._queue.ask(self._namespace)
            try:
                yield from ticket
            except BaseException as thrown:  # noqa: BLE001 - what the task is to hear, the work hears, and at once
                go_on = partial(self._work.throw, thrown)
            began = self._queue.clock()
            took = 0.0
            try:
                awaited = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                took = self._queue.clock() - began + self._apart
                self._apart = 0.0
                self.seconds += took
                self._queue.leave(ticket, self._namespace, took)
            try:
                yield awaited
            except BaseException as thrown:  # noqa: BLE001 - the same
                go_on = partial(self._work.throw, thrown)
            else:
                go_on = partial(self._work.send, None)

    def _add(self, seconds: float) -> None:
        self._apart += seconds

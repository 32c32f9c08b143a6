"""How much processor time one of a loop's many tasks takes."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Metered(Generic[T]):
    """An awaitable that runs `work` and adds up in `seconds` what its steps take, without what others do meanwhile.

    `clock` gives the thread's processor time, in seconds. Tasks that `work` starts are not counted.
    """

    def __init__(self, work: Coroutine[Any, Any, T], clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._work = work
        self._clock = clock

    def __await__(self) -> Generator[Any, Any, T]:
        go_on: Callable[[], Any] = partial(self._work.send, None)
        while True:
            began = self._clock()
            try:
                awaited = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.seconds += self._clock() - began
            try:
                yield awaited
            except BaseException as thrown:  # noqa: BLE001 - what the task is to hear, the work hears
                go_on = partial(self._work.throw, thrown)
            else:
                go_on = partial(self._work.send, None)

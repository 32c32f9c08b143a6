"""An event loop whose clock jumps to the next timer: hours pass in seconds, identically in each run."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Work for a thread is done at once; its caller gets the result `delay()` seconds later."""

    def __init__(self, delay: Callable[[], float]) -> None:
        self._now = 0.0
        self._delay = delay
        super().__init__(_TimeSkippingSelector(self))

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: object) -> asyncio.Future[Any]:  # noqa: ARG002
        future = self.create_future()
        # Half of the time is for the request.
        there = self._delay() / 2

        def work() -> None:
            try:
                self._complete_later(there, future, func(*args), None)
            except Exception as error:  # noqa: BLE001 - the waiting caller gets it
                self._complete_later(there, future, None, error)

        self.call_later(there, work)
        return future

    def _complete_later(
        self, seconds: float, future: asyncio.Future[Any], result: object, error: Exception | None
    ) -> None:
        def tell() -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.call_later(seconds, tell)


class _TimeSkippingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen: no timer is set")
        if not ready and timeout is not None:
            self._loop.advance(timeout)
        return ready


def run(main: Coroutine[Any, Any, Result], delay: Callable[[], float] = lambda: 0.0) -> Result:
    """Return the result of `main`, run in virtual time that starts at 0."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(delay)) as runner:
        return runner.run(main)

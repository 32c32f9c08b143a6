"""Handle signals such as Ctrl-C: the first stops the job, the second kills it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

GRACE_SECONDS = 10.0
"""How long ranks may take to exit after the first Ctrl-C, to write a last checkpoint."""

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "the terminal was closed (SIGHUP)"}


@dataclass(frozen=True)
class StopRequest:
    """A request to stop: messages show its cause `by`; `grace_seconds` 0 kills the ranks at once."""

    by: str
    grace_seconds: float


@dataclass
class StopSignals:
    """Handles signals and passes each request on to `on_stop`."""

    on_stop: Callable[[StopRequest], None]
    _received: list[signal.Signals] = field(default_factory=list)

    @property
    def exit_code(self) -> int | None:
        """128 + the first signal, as in shells; None if there was none."""
        return 128 + self._received[0] if self._received else None

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle the signals as long as the loop runs."""
        for number in _NAMES:
            loop.add_signal_handler(number, self._handle, number)

    def _handle(self, number: signal.Signals) -> None:
        self._received.append(number)
        is_repeated = len(self._received) > 1
        self.on_stop(StopRequest(_NAMES[number], 0.0 if is_repeated else GRACE_SECONDS))

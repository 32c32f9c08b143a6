"""Handle signals such as Ctrl-C. The first signal stops the job, and the second signal kills it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

GRACE_SECONDS = 10.0
"""The time that ranks have to exit after the first Ctrl-C, for example to write a checkpoint."""

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "the terminal was closed (SIGHUP)"}


@dataclass(frozen=True)
class StopRequest:
    """A request to stop the job, with its cause. If `grace_seconds` is 0, muster kills the ranks at once."""

    cause: str
    grace_seconds: float


@dataclass
class StopSignals:
    """Handles signals, and passes a request for each signal to `on_stop`."""

    on_stop: Callable[[StopRequest], None]
    _received_signals: list[signal.Signals] = field(default_factory=list)

    @property
    def exit_code(self) -> int | None:
        """128 plus the number of the first signal, as in shells; None if no signal arrived."""
        return 128 + self._received_signals[0] if self._received_signals else None

    def install_handlers(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle the signals while the loop runs."""
        for number in _NAMES:
            loop.add_signal_handler(number, self._handle, number)

    def _handle(self, number: signal.Signals) -> None:
        self._received_signals.append(number)
        is_repeated = len(self._received_signals) > 1
        self.on_stop(StopRequest(_NAMES[number], 0.0 if is_repeated else GRACE_SECONDS))

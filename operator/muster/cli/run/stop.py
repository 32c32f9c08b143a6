"""Ctrl-C and its kin: the first asks the job to stop, the second kills it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

GRACE_SECONDS = 10.0
"""How long ranks may take to end by themselves after the first Ctrl-C, for a last snapshot."""

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "the terminal's end (SIGHUP)"}


@dataclass(frozen=True)
class Stop:
    """A request to stop: `by` is for people; no grace means at once."""

    by: str
    grace_seconds: float


@dataclass
class StopSignals:
    """Listens for signals and passes each request on to `on_stop`."""

    on_stop: Callable[[Stop], None]
    _heard: list[signal.Signals] = field(default_factory=list)

    @property
    def exit_code(self) -> int | None:
        """128 + the first signal, as shells count; None when there was none."""
        return 128 + self._heard[0] if self._heard else None

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take over the signals for as long as the loop runs."""
        for number in _NAMES:
            loop.add_signal_handler(number, self._hear, number)

    def _hear(self, number: signal.Signals) -> None:
        self._heard.append(number)
        is_repeated = len(self._heard) > 1
        self.on_stop(Stop(_NAMES[number], 0.0 if is_repeated else GRACE_SECONDS))

"""The shared state of the stand-in while a script runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .account import AccountOptions
from .recorder import Recorder
from .unknown import Unknown


@dataclass(frozen=True)
class State:
    """The recorder, the user's AWS options, and the files that the notebook has written so far."""

    recorder: Recorder
    facts: AccountOptions
    written: set[Path] = field(default_factory=set)

    def unknown(self, origin: str) -> Unknown:
        """Return an unknown value for a result of AWS, or of the SDK's parts that are unrelated to training."""
        return Unknown(self.recorder, origin)


_current: list[State] = []


def set_state(world: State) -> None:
    """Set the state of the process, before the script's first line."""
    _current[:] = [world]


def current_state() -> State:
    """Return the state of the process. It is global because the script itself creates the SDK's objects."""
    return _current[0]

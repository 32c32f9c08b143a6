"""The shared state of the stand-in while a script runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .account import AccountOptions
from .recorder import Recorder
from .unknown import UnknownValue


@dataclass(frozen=True)
class State:
    """The recorder, the user's AWS options, and the files that the notebook has written."""

    recorder: Recorder
    account_options: AccountOptions
    notebook_files: set[Path] = field(default_factory=set)

    def create_unknown(self, origin: str) -> UnknownValue:
        """Return an unknown value, for results of AWS and of SDK functions that are unrelated to training."""
        return UnknownValue(self.recorder, origin)


_current: list[State] = []


def set_state(state: State) -> None:
    """Set the state of the process, before the script's first line."""
    _current[:] = [state]


def get_state() -> State:
    """Return the state of the process. The state is global, because the script itself creates the SDK's objects."""
    return _current[0]

"""The shared state of the stand-in while a script runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .facts import Facts
from .recorder import Recorder
from .unknown import Unknown


@dataclass(frozen=True)
class World:
    """The recorder, the account's facts, and the files that the notebook would have written so far."""

    recorder: Recorder
    facts: Facts
    written: set[Path] = field(default_factory=set)

    def unknown(self, origin: str) -> Unknown:
        """Return a value that only AWS, or a part of the SDK that isn't about training, could provide."""
        return Unknown(self.recorder, origin)


_current: list[World] = []


def begin(world: World) -> None:
    """Set the world of the process, before the script's first line."""
    _current[:] = [world]


def world() -> World:
    """The world of the process: the script creates the SDK's objects, so nothing could pass it to them."""
    return _current[0]

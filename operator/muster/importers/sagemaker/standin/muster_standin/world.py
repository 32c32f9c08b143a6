"""What every part of the stand-in shares while a script runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .facts import Facts
from .recorder import Recorder
from .unknown import Unknown


@dataclass(frozen=True)
class World:
    """The line out, what is known of AWS, and the files that the notebook would have written by now."""

    recorder: Recorder
    facts: Facts
    written: set[Path] = field(default_factory=set)

    def unknown(self, origin: str) -> Unknown:
        """Something that only AWS, or a part of the SDK that isn't about training, could give."""
        return Unknown(self.recorder, origin)


_begun: list[World] = []


def begin(world: World) -> None:
    """Make this the world of the process, before the script's first line."""
    _begun[:] = [world]


def world() -> World:
    """The world of the process: the SDK's classes are made by the script, which can't hand it on."""
    return _begun[0]

"""What a turn leaves to do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requeue:
    """When there is more although nothing happens (Unix seconds; None: never), or nothing at all."""

    until: float | None
    is_over: bool

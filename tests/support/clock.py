"""A clock for code that takes its clock as an argument."""

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds, which the test advances: Unix seconds of the start, unless the test says others."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now

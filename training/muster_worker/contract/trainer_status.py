"""The progress that rank 0 reports with Kubeflow Trainer's protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

MAX_PERCENT = 100

MAX_REMAINING_SECONDS = 315_360_000
"""Ten years. A longer estimate is wrong and does not count."""

MIN_STEPS_PER_SECOND = 1e-9
MAX_STEPS_PER_SECOND = 1e9
"""A speed outside of them does not count: a script may report a time or a number of bytes as its step."""


@dataclass(frozen=True)
class TrainerStatus:
    """The last report of rank 0, sent `age` seconds ago. A value that it does not contain is None.

    `percent` and `remaining_seconds` are the script's own. `step` and `total_steps` are the metrics `current_step` and
    `total_steps`. `steps_per_second` is their mean speed (`mean_speed.py`).
    """

    age: float
    percent: Optional[int] = None
    remaining_seconds: Optional[int] = None
    step: Optional[int] = None
    total_steps: Optional[int] = None
    steps_per_second: Optional[float] = None

"""Validate the progress that a script reports with Kubeflow Trainer's protocol. The script is untrusted."""

from muster_worker.contract.trainer_status import (
    MAX_PERCENT,
    MAX_REMAINING_SECONDS,
    MAX_STEPS_PER_SECOND,
    MIN_STEPS_PER_SECOND,
    TrainerStatus,
)

_LIMITS = (
    ("percent", 0, MAX_PERCENT),
    ("remaining_seconds", 0, MAX_REMAINING_SECONDS),
    ("step", 0, 2**63),
    ("total_steps", 1, 2**63),
    ("steps_per_second", MIN_STEPS_PER_SECOND, MAX_STEPS_PER_SECOND),
)
"""The names of the fields with their least and greatest values."""


def find_trainer_status_problem(status: TrainerStatus | None, rank: int) -> str | None:
    """Return the problem of a rank's report, with the name of the field; None if there is none."""
    if status is None:
        return None
    if rank != 0:
        return "trainer_status: not of rank 0"
    for name, least, greatest in _LIMITS:
        value = getattr(status, name)
        if value is not None and not least <= value <= greatest:
            return f"trainer_status.{name}: expected {least} to {greatest}"
    return None

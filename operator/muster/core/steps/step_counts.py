"""Decide when the status begins to show why a rank's steps are not counted."""

from muster.core.facts import RankFacts

STEP_COUNT_DELAY_SECONDS = 30.0
"""The status shows the reason of a missing step count only after this time, because importing torch takes seconds."""

_EARLY_REASONS = ("NotHooked", "NoTorch")
"""Reasons that also apply to a rank that has just started."""


def find_reason_display_time(rank: RankFacts) -> float | None:
    """Return the time (Unix seconds) from which the status may say why the rank's steps are not counted.

    0 is at once; None is returned while the rank has not started.
    """
    if rank.report.no_step_reason not in _EARLY_REASONS:
        return 0.0
    return None if rank.started_at is None else rank.started_at + STEP_COUNT_DELAY_SECONDS

"""The times of an attempt's steps, from the start of its ranks to their last step."""

from dataclasses import dataclass

from muster.core.status.views import StatusInput


@dataclass(frozen=True)
class AttemptSteps:
    """The steps of the current attempt. Times are Unix seconds; None if the event is unknown or has not happened.

    `running_since` is when the last rank started. `first_step_at` is the end of the first step of any rank.
    `last_step_at` is the end of the last step of any rank. `can_count` is set if a rank can count steps, even before
    its first step. `resumed_at_step` is the first step that the script reported, and `script_step` the last step.
    """

    running_since: float | None = None
    first_step_at: float | None = None
    last_step_at: float | None = None
    can_count: bool = False
    resumed_at_step: int | None = None
    script_step: int | None = None

    def find_catch_up_time(self, highest_step: int | None) -> float | None:
        """Return when the attempt had repeated all steps up to `highest_step` of the earlier attempts.

        The result assumes that all steps take the same time.
        """
        first_step_at, last_step_at, begin, end = (
            self.first_step_at,
            self.last_step_at,
            self.resumed_at_step,
            self.script_step,
        )
        if first_step_at is None or last_step_at is None or highest_step is None or begin is None or end is None:
            return first_step_at
        if highest_step <= begin:
            return first_step_at
        if highest_step >= end:
            return last_step_at
        return first_step_at + (highest_step - begin) / (end - begin) * (last_step_at - first_step_at)


def find_attempt_steps(status_input: StatusInput) -> AttemptSteps:
    """Return the times of the current attempt's steps, from the ranks' reports."""
    ranks = [view.facts for view in status_input.views if view.facts is not None]
    starts = [rank.started_at for rank in ranks if rank.started_at is not None]
    firsts = [rank.first_step_at for rank in ranks if rank.first_step_at is not None]
    stepping = [rank for rank in ranks if rank.first_step_at is not None]
    # A script may count its steps from 0 again. Then the highest step is older than the last step.
    lasts = [at for rank in stepping for at in (rank.highest_step_at, rank.last_step_at) if at is not None]
    script_ranks = [rank.report for rank in ranks if rank.report.first_script_step is not None]
    return AttemptSteps(
        running_since=max(starts) if len(starts) == len(status_input.views) else None,
        first_step_at=min(firsts, default=None),
        last_step_at=max(lasts, default=None),
        can_count=any(rank.report.step is not None for rank in ranks),
        resumed_at_step=min((report.first_script_step or 0 for report in script_ranks), default=None),
        script_step=max((report.step or 0 for report in script_ranks), default=None),
    )

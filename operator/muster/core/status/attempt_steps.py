"""The times of an attempt's steps: when its ranks ran, first made a step, caught up with earlier attempts, last did."""

from dataclasses import dataclass

from muster.core.status.views import StatusInput


@dataclass(frozen=True)
class AttemptSteps:
    """The steps of the current attempt. Times are Unix seconds, None if they are not known or not reached.

    `running_since` is when the last rank started. `first_at` is the end of the first step of any rank, `last_at` that
    of the last step. `can_count` is set if a rank's steps can be counted, even before the first one.
    `resumed_at_step` is the first step that the script reported, `script_step` the last one.
    """

    running_since: float | None = None
    first_at: float | None = None
    last_at: float | None = None
    can_count: bool = False
    resumed_at_step: int | None = None
    script_step: int | None = None

    def caught_up_at(self, furthest: int | None) -> float | None:
        """Return when the attempt had repeated all steps up to `furthest`, which an earlier attempt had reached.

        The ranks' steps are assumed to take equal times.
        """
        first_at, last_at, begin, end = self.first_at, self.last_at, self.resumed_at_step, self.script_step
        if first_at is None or last_at is None or furthest is None or begin is None or end is None:
            return first_at
        if furthest <= begin:
            return first_at
        if furthest >= end:
            return last_at
        return first_at + (furthest - begin) / (end - begin) * (last_at - first_at)


def find_attempt_steps(status_input: StatusInput) -> AttemptSteps:
    """Return the times of the current attempt's steps, from the ranks' reports."""
    ranks = [view.facts for view in status_input.views if view.facts is not None]
    starts = [rank.started_at for rank in ranks if rank.started_at is not None]
    firsts = [rank.first_step_at for rank in ranks if rank.first_step_at is not None]
    stepping = [rank for rank in ranks if rank.first_step_at is not None]
    # A script's own step may fall: then the highest one is older than the last one.
    lasts = [at for rank in stepping for at in (rank.highest_step_at, rank.last_step_at) if at is not None]
    script_ranks = [rank.report for rank in ranks if rank.report.first_script_step is not None]
    return AttemptSteps(
        running_since=max(starts) if len(starts) == len(status_input.views) else None,
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
        can_count=any(rank.report.step is not None for rank in ranks),
        resumed_at_step=min((report.first_script_step or 0 for report in script_ranks), default=None),
        script_step=max((report.step or 0 for report in script_ranks), default=None),
    )

"""Estimate how much of the training is done, and how long the rest takes. Pure.

The sources, in this order: the progress that rank 0 reports with Kubeflow Trainer's protocol, the total that the script
reports with `muster_worker.report`, and `spec.totalSteps`. See docs/progress.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from muster.core.outcome import Verdict
from muster.core.status.views import RUNNING, RankView, StatusInput
from muster_worker.contract.trainer_status import MAX_PERCENT, MAX_REMAINING_SECONDS, TrainerStatus


@dataclass(frozen=True)
class Completion:
    """How much of the training is done, in percent, and how long the rest takes from `at` on (Unix seconds).

    `remaining_seconds` is None if it is unknown.
    """

    percent: int
    remaining_seconds: int | None = None
    at: float | None = None

    def find_remaining_seconds(self, at: float | None) -> int | None:
        """Return how long the rest takes from another time on."""
        if self.remaining_seconds is None or self.at is None or at is None:
            return self.remaining_seconds
        return max(0, round(self.remaining_seconds - (at - self.at)))


def find_completion(status_input: StatusInput) -> Completion | None:
    """Return the completion of the current attempt, or that of a job that has succeeded; None if it is unknown."""
    current = _find_current_completion(status_input)
    outcome, previous = status_input.outcome, status_input.previous.progress
    if outcome.is_decided and outcome.verdict is Verdict.SUCCEEDED:
        was_known = previous is not None and previous.percent is not None
        is_known = current is not None or was_known or status_input.job.spec.total_steps is not None
        return Completion(MAX_PERCENT, 0, None if current is None else current.at) if is_known else None
    if current is None or not _may_estimate(status_input):
        return None if current is None else Completion(current.percent, None, current.at)
    return current


def _may_estimate(status_input: StatusInput) -> bool:
    """Whether the ranks make progress, as far as muster knows."""
    outcome = status_input.outcome
    return not outcome.is_decided and outcome.hang is None


def _find_current_completion(status_input: StatusInput) -> Completion | None:
    views = status_input.views
    first = views[0].facts if views and views[0].rank == 0 else None
    if first is not None and first.report.trainer_status is not None:
        completion = _read_trainer_status(views[0], first.report.trainer_status, first.trainer_status_at)
        if completion is not None and not _is_start_of_later_attempt(first.report.trainer_status, status_input):
            return completion
    with_total = [view for view in views if view.facts is not None and view.facts.report.total_steps is not None]
    source = _find_slowest(with_total)
    if source is not None and source.facts is not None:
        return _estimate_from_steps(source, source.facts.report.total_steps, status_input)
    total = status_input.job.spec.total_steps
    # A job may have 100,000 ranks: look for the slowest one only if its steps count.
    return None if total is None else _estimate_from_steps(_find_slowest(views), total, status_input)


def _is_start_of_later_attempt(status: TrainerStatus, status_input: StatusInput) -> bool:
    """Whether the script has not reported yet from which step it continues.

    Transformers reports 0 percent when its training begins, also before it continues from a checkpoint.
    """
    return status.percent == 0 and status.step is None and status_input.outcome.attempt > 1


def _read_trainer_status(view: RankView, status: TrainerStatus, at: float | None) -> Completion | None:
    """Return the completion that rank 0 reports. muster trusts its steps more than its estimate.

    After a checkpoint was loaded, Transformers divides the time since the start by the steps of all attempts.
    """
    percent, remaining = status.percent, status.remaining_seconds
    if status.step is not None and status.total_steps is not None:
        percent = compute_percent(status.step, status.total_steps) if percent is None else percent
        counted = view.facts.report.mean_steps_per_second if view.facts is not None else None
        estimated = estimate_remaining_seconds(status.step, status.total_steps, status.steps_per_second or counted)
        remaining = remaining if estimated is None and status.step <= status.total_steps else estimated
    if percent is None:
        return None
    return Completion(percent, remaining if view.state == RUNNING else None, at)


def _estimate_from_steps(view: RankView | None, total: int | None, status_input: StatusInput) -> Completion | None:
    if view is None or view.facts is None or total is None:
        return None
    report = view.facts.report
    if report.step is None:
        return None
    # muster counts the steps of an attempt. Only the script knows from which step a later attempt continues.
    if report.first_script_step is None and status_input.outcome.attempt > 1:
        return None
    remaining = estimate_remaining_seconds(report.step, total, report.mean_steps_per_second)
    is_running = view.state == RUNNING
    return Completion(
        compute_percent(report.step, total), remaining if is_running else None, view.facts.highest_step_at
    )


def _find_slowest(views: Iterable[RankView]) -> RankView | None:
    """Return the running rank with the fewest steps; if no rank runs, the one of all ranks."""
    with_steps = [view for view in views if view.facts is not None and view.facts.report.step is not None]
    candidates = [view for view in with_steps if view.state == RUNNING] or with_steps
    return min(candidates, key=_get_step, default=None)


def _get_step(view: RankView) -> tuple[int, int]:
    return (view.facts.report.step or 0 if view.facts is not None else 0, view.rank)


def compute_percent(done: int, total: int) -> int:
    """Return how many percent of `total` are done, rounded down; 100 if it is more than the total."""
    return min(MAX_PERCENT, done * 100 // total)


def estimate_remaining_seconds(done: int, total: int, per_second: float | None) -> int | None:
    """Return how long the rest takes at this speed; None if the speed is unknown, or if the total is too low."""
    if done > total:
        return None
    if done == total:
        return 0
    if per_second is None or per_second <= 0:
        return None
    seconds = (total - done) / per_second
    return math.ceil(seconds) if seconds <= MAX_REMAINING_SECONDS else None

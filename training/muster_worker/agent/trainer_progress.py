"""What rank 0 has reported with Kubeflow Trainer's protocol during an attempt. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from muster_worker.contract.trainer_status import TrainerStatus
from muster_worker.rank_group.mean_speed import SpeedSamples

_NO_SAMPLES = SpeedSamples()


@dataclass(frozen=True)
class TrainerReport:
    """A report that arrived at `at`, on the node's monotonic clock. A value that it does not contain is None."""

    at: float
    percent: Optional[int] = None
    remaining_seconds: Optional[int] = None
    step: Optional[int] = None
    total_steps: Optional[int] = None


@dataclass(frozen=True)
class TrainerProgress:
    """The last report, and the speed of all reports with a step."""

    last: TrainerReport
    speed: SpeedSamples


def add_report(before: Optional[TrainerProgress], report: TrainerReport) -> TrainerProgress:
    """Return the progress after a report."""
    speed = _NO_SAMPLES if before is None else before.speed
    return TrainerProgress(report, speed if report.step is None else speed.add(report.step, report.at))


def build_trainer_status(progress: Optional[TrainerProgress], now: float, max_age: float) -> Optional[TrainerStatus]:
    """Return the progress for a report of the node that is sent at `now`; None if rank 0 has reported nothing."""
    if progress is None:
        return None
    last = progress.last
    return TrainerStatus(
        age=min(max(0.0, now - last.at), max_age),
        percent=last.percent,
        remaining_seconds=last.remaining_seconds,
        step=last.step,
        total_steps=last.total_steps,
        steps_per_second=progress.speed.steps_per_second,
    )

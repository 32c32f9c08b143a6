"""Compare two statuses of a job, and find the events that the metrics count."""

from dataclasses import dataclass

from muster.api.status.status import RESUMED, Status
from muster.api.timestamps import parse_timestamp
from muster.core.metrics.reasons import label_reason
from muster.core.restarts import PLANNED_RESTARTS
from muster.core.status.views import FAILED

MAX_SECONDS = 366 * 24 * 3600.0
"""The metrics ignore longer times.

They come from an edited status, and a single one would make the sum of a histogram useless.
"""

_SUSPENDED_BY_USER = "Suspended"
"""The reason in the record of a training job that ended because a user suspended the job."""


@dataclass(frozen=True)
class Transition:
    """The events that one write of a status adds to the metrics; None for events that did not happen.

    `restart_reason` is the reason of the failure or request before another attempt. `end_reason` is the reason of the
    job's end. `end_phase` is Succeeded or Failed.
    """

    restart_reason: str | None = None
    end_phase: str | None = None
    end_reason: str | None = None
    start_seconds: float | None = None
    detection_seconds: float | None = None
    recovery_seconds: float | None = None
    has_new_stragglers: bool = False


def find_transition(before: Status, after: Status, created_at: float, now: float) -> Transition:
    """Compare the status before a write with the status that muster writes at `now`. Times are in Unix seconds."""
    restart = _find_restart(before, after)
    end = after.final_condition if before.final_condition is None else None
    return Transition(
        restart_reason=None if restart is None else label_reason(restart[0]),
        end_phase=None if end is None else ("Succeeded" if end.type == "Complete" else "Failed"),
        end_reason=None if end is None else label_reason(end.reason),
        start_seconds=_measure_start(before, after, created_at, now),
        detection_seconds=_measure_detection(before, after, restart, now),
        recovery_seconds=_measure_recovery(before, after),
        has_new_stragglers=after.stragglers is not None
        and (before.stragglers is None or before.stragglers.since != after.stragglers.since),
    )


def _find_restart(before: Status, after: Status) -> tuple[str, str | None] | None:
    """Return the reason and the time of a failure or request after which another attempt starts; None without one."""
    if after.restarts is not None and after.restarts.history:
        record = after.restarts.history[-1]
        earlier_records = () if before.restarts is None else before.restarts.history
        is_new = all((record.attempt, record.at) != (earlier.attempt, earlier.at) for earlier in earlier_records)
        return (record.reason, record.at) if is_new else None
    reason, attempt = _find_last_training_job(after)
    is_new = reason is not None and attempt > _find_last_training_job(before)[1]
    return (reason, None) if reason is not None and is_new and reason != _SUSPENDED_BY_USER else None


def _find_last_training_job(status: Status) -> tuple[str | None, int]:
    """Return why the previous SageMaker training job ended, and its attempt; None and 0 on other backends."""
    record = None if status.backend is None else status.backend.sagemaker
    if record is None or not record.earlier:
        return None, 0
    return record.earlier[-1].reason, record.earlier[-1].attempt


def _measure_start(before: Status, after: Status, created_at: float, now: float) -> float | None:
    """Return the seconds from the job's creation or resumption until its first ranks run."""
    if after.phase != "Running" or before.phase == "Running":
        return None
    reason, attempt = _find_last_training_job(after)
    is_next_training_job = reason not in (None, _SUSPENDED_BY_USER) and attempt == after.attempt - 1
    if after.last_restart is not None or is_next_training_job:
        return None
    suspended_condition = after.suspended_condition
    if suspended_condition is not None and suspended_condition.reason == RESUMED:
        return _measure_seconds_since(suspended_condition.last_transition_time, now)
    return _limit_seconds(now - created_at)


def _measure_detection(
    before: Status, after: Status, restart: tuple[str, str | None] | None, now: float
) -> float | None:
    """Return the seconds from a failure to the first status that shows it."""
    if _find_first_failure_time(before) is not None:
        return None
    at = _find_first_failure_time(after)
    # A planned restart has no failure.
    if at is None and restart is not None and restart[0] not in PLANNED_RESTARTS:
        at = restart[1]
    return _measure_seconds_since(at, now)


def _find_first_failure_time(status: Status) -> str | None:
    """Return when the rank that failed first ended."""
    details = () if status.ranks is None else status.ranks.details
    return next((detail.at for detail in details if detail.state == FAILED and detail.at is not None), None)


def _measure_recovery(before: Status, after: Status) -> float | None:
    """Return the seconds from a failure until all ranks of the next attempt run."""
    last = None if after.restarts is None or not after.restarts.history else after.restarts.history[-1]
    if last is None or last.seconds_lost is None or before.restarts is None or last.reason in PLANNED_RESTARTS:
        return None
    was_open = any(
        (entry.attempt, entry.at, entry.seconds_lost) == (last.attempt, last.at, None)
        for entry in before.restarts.history
    )
    return _limit_seconds(last.seconds_lost) if was_open else None


def _measure_seconds_since(time: str | None, now: float) -> float | None:
    try:
        return None if time is None else _limit_seconds(now - parse_timestamp(time))
    except (ValueError, OverflowError):
        # A user has edited the time.
        return None


def _limit_seconds(seconds: float) -> float | None:
    # Clocks may differ by some milliseconds. Comparisons with NaN are false.
    return max(0.0, seconds) if -1.0 < seconds < MAX_SECONDS else None

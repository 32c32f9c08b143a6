"""The metrics that one write of a status changes."""

from dataclasses import replace
from typing import Any

import pytest

from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.sagemaker import BackendStatus, EarlierTrainingJob, SageMakerStatus
from muster.api.status.status import Condition, RankDetail, RankStatus, Status
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp
from muster.core.metrics.transitions import Transition, find_transition
from support.rows import check_rows

CREATED = "2026-11-21T04:05:00Z"
CREATED_AT = parse_timestamp(CREATED)
NO_CHANGE = Transition()


def timestamp_after(seconds: float) -> str:
    """Return the timestamp this many seconds after the job's creation."""
    return format_timestamp_milliseconds(CREATED_AT + seconds)


def status(phase: str, **fields: Any) -> Status:
    return Status(phase=phase, attempt=1, **fields)


def failed_rank(failed_at: str | None, state: str = "Failed") -> RankStatus:
    detail = RankDetail(rank=1, node=0, state=state, reason="RankKilled", at=failed_at)
    return RankStatus(world=2, running=1, ready="1/2", details=(detail,))


def restart_record(
    attempt: int = 1, *, reason: str = "RankKilled", time: str = "", lost: float | None = None
) -> RestartRecord:
    return RestartRecord(
        attempt=attempt,
        reason=reason,
        message="",
        counts_as="Failure",
        at=time or timestamp_after(30),
        seconds_lost=lost,
    )


REQUESTED = restart_record(reason="RestartRequested")


def restarting_status(*history: RestartRecord, phase: str = "Restarting") -> Status:
    total = len(history)
    restarts = Restarts(total=total, failures=total, disruptions=0, replacement=0, history=history)
    return Status(phase=phase, attempt=total + 1, restarts=restarts)


def condition(kind: str, reason: str, value: str = "True", since: str = CREATED) -> tuple[Condition, ...]:
    return (Condition(type=kind, status=value, reason=reason, last_transition_time=since),)


def training_job_status(attempt: int, *reasons: str, phase: str = "Pending") -> Status:
    """Return a job on SageMaker whose earlier training jobs ended with these reasons."""
    entries = tuple(
        EarlierTrainingJob(attempt=number, training_job_name="t", status="Failed", reason=reason)
        for number, reason in enumerate(reasons, start=1)
    )
    current = SageMakerStatus(
        training_job_name="t", attempt=attempt, region="us-west-2", tried_at=CREATED, earlier=entries
    )
    return Status(phase=phase, attempt=attempt, backend=BackendStatus(sagemaker=current))


A_WRITE_COUNTS_EACH_CHANGE_ONCE_ROWS: list[tuple[Status, Status, Transition]] = [
    (status("Pending"), status("Starting"), NO_CHANGE),
    (status("Running"), status("Running"), NO_CHANGE),
    # The job starts.
    (status("Starting"), status("Running"), replace(NO_CHANGE, start_seconds=40.0)),
    (
        status("Starting"),
        status("Running", conditions=condition("Suspended", "Resumed", "False", timestamp_after(35))),
        replace(NO_CHANGE, start_seconds=5.0),
    ),
    # A rank fails.
    (
        status("Running"),
        status("Running", ranks=failed_rank(timestamp_after(39.5))),
        replace(NO_CHANGE, detection_seconds=0.5),
    ),
    (
        status("Running", ranks=failed_rank(timestamp_after(39))),
        status("Stopping", ranks=failed_rank(timestamp_after(39))),
        NO_CHANGE,
    ),
    (status("Running"), status("Running", ranks=failed_rank(timestamp_after(39.5), "Unknown")), NO_CHANGE),
    # The job restarts. The restart detects only a failure that is not a rank's.
    (
        status("Running"),
        restarting_status(restart_record()),
        Transition(restart_reason="RankKilled", detection_seconds=10.0),
    ),
    (
        status("Running", ranks=failed_rank(timestamp_after(39))),
        restarting_status(restart_record()),
        Transition(restart_reason="RankKilled"),
    ),
    (restarting_status(restart_record()), restarting_status(restart_record(), phase="Starting"), NO_CHANGE),
    (restarting_status(restart_record()), restarting_status(restart_record(), phase="Running"), NO_CHANGE),
    (
        restarting_status(restart_record(lost=2.0)),
        restarting_status(restart_record(lost=2.0), restart_record(2, reason="OOMKilled", time=timestamp_after(40))),
        Transition(restart_reason="OOMKilled", detection_seconds=0.0),
    ),
    # A user has requested the restart.
    (status("Running"), restarting_status(REQUESTED), Transition(restart_reason="RestartRequested")),
    (
        restarting_status(REQUESTED),
        restarting_status(restart_record(reason="RestartRequested", lost=1.0), phase="Running"),
        NO_CHANGE,
    ),
    # The job has recovered.
    (
        restarting_status(restart_record()),
        restarting_status(restart_record(lost=1.25), phase="Running"),
        replace(NO_CHANGE, recovery_seconds=1.25),
    ),
    (
        restarting_status(restart_record(lost=1.25)),
        restarting_status(restart_record(lost=1.25), phase="Running"),
        NO_CHANGE,
    ),
    # The job ends.
    (
        status("Running"),
        status("Succeeded", conditions=condition("Complete", "AllRanksSucceeded")),
        Transition(end_phase="Succeeded", end_reason="AllRanksSucceeded"),
    ),
    (
        status("Stopping", conditions=condition("Failed", "Stopping", "False")),
        status("Failed", conditions=condition("Failed", "OOMKilled")),
        Transition(end_phase="Failed", end_reason="OOMKilled"),
    ),
    (
        status("Failed", conditions=condition("Failed", "OOMKilled")),
        status("Failed", conditions=condition("Failed", "OOMKilled")),
        NO_CHANGE,
    ),
    # On SageMaker another training job follows.
    (training_job_status(1), training_job_status(2, "SpotInterrupted"), Transition(restart_reason="SpotInterrupted")),
    (training_job_status(2, "SpotInterrupted"), training_job_status(2, "SpotInterrupted", phase="Running"), NO_CHANGE),
    (training_job_status(1), training_job_status(2, "Suspended"), NO_CHANGE),
    (
        training_job_status(2, "Suspended"),
        training_job_status(2, "Suspended", phase="Running"),
        replace(NO_CHANGE, start_seconds=40.0),
    ),
]


def test_a_write_counts_each_change_once() -> None:
    def check(before: Status, after: Status, expected: Transition) -> None:
        assert find_transition(before, after, CREATED_AT, CREATED_AT + 40) == expected

    check_rows(A_WRITE_COUNTS_EACH_CHANGE_ONCE_ROWS, lambda row: check(*row))


@pytest.mark.parametrize(
    "timestamp", ["", "yesterday", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", timestamp_after(80)]
)
def test_an_edited_time_changes_no_metric(timestamp: str) -> None:
    failed = status("Running", ranks=failed_rank(timestamp))
    assert find_transition(status("Running"), failed, CREATED_AT, CREATED_AT + 40) == NO_CHANGE
    resumed = status("Running", conditions=condition("Suspended", "Resumed", "False", timestamp))
    assert find_transition(status("Starting"), resumed, CREATED_AT, CREATED_AT + 40) == NO_CHANGE


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 1e300])
def test_an_impossible_duration_changes_no_metric(seconds: float) -> None:
    running = restarting_status(restart_record(lost=seconds), phase="Running")
    assert find_transition(restarting_status(restart_record()), running, CREATED_AT, CREATED_AT + 40) == NO_CHANGE
    assert find_transition(status("Starting"), status("Running"), CREATED_AT, CREATED_AT + seconds) == NO_CHANGE


def test_an_unknown_reason_is_counted_as_other() -> None:
    forged = restarting_status(restart_record(reason="X" * 64))
    assert find_transition(status("Running"), forged, CREATED_AT, CREATED_AT + 40).restart_reason == "Other"
    failed = status("Failed", conditions=condition("Failed", 'a"} 1\nmuster_jobs 7'))
    assert find_transition(status("Running"), failed, CREATED_AT, CREATED_AT + 40).end_reason == "Other"

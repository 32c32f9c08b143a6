"""What one write of a status adds to the metrics."""

from dataclasses import replace
from typing import Any

import pytest

from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.sagemaker import BackendStatus, EarlierTrainingJob, SageMakerStatus
from muster.api.status.status import Condition, RankDetail, RankStatus, Status
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp
from muster.core.metrics.transitions import Transition, find_transition

CREATED = "2026-11-21T04:05:00Z"
CREATED_AT = parse_timestamp(CREATED)
NOTHING = Transition()


def at(seconds: float) -> str:
    """Return a time, in seconds after the job's creation."""
    return format_timestamp_milliseconds(CREATED_AT + seconds)


def status(phase: str, **fields: Any) -> Status:
    return Status(phase=phase, attempt=1, **fields)


def ranks(failed_at: str | None, state: str = "Failed") -> RankStatus:
    detail = RankDetail(rank=1, node=0, state=state, reason="RankKilled", at=failed_at)
    return RankStatus(world=2, running=1, ready="1/2", details=(detail,))


def record(attempt: int = 1, *, reason: str = "RankKilled", time: str = "", lost: float | None = None) -> RestartRecord:
    return RestartRecord(
        attempt=attempt, reason=reason, message="", counts_as="Failure", at=time or at(30), seconds_lost=lost
    )


REQUESTED = record(reason="RestartRequested")


def restarted(*history: RestartRecord, phase: str = "Restarting") -> Status:
    total = len(history)
    restarts = Restarts(total=total, failures=total, disruptions=0, replacement=0, history=history)
    return Status(phase=phase, attempt=total + 1, restarts=restarts)


def condition(kind: str, reason: str, value: str = "True", since: str = CREATED) -> tuple[Condition, ...]:
    return (Condition(type=kind, status=value, reason=reason, last_transition_time=since),)


def training_job(attempt: int, *earlier: str, phase: str = "Pending") -> Status:
    """Return a job on SageMaker whose earlier training jobs ended with these reasons."""
    entries = tuple(
        EarlierTrainingJob(attempt=number, training_job_name="t", status="Failed", reason=reason)
        for number, reason in enumerate(earlier, start=1)
    )
    current = SageMakerStatus(
        training_job_name="t", attempt=attempt, region="us-west-2", tried_at=CREATED, earlier=entries
    )
    return Status(phase=phase, attempt=attempt, backend=BackendStatus(sagemaker=current))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (status("Pending"), status("Starting"), NOTHING),
        (status("Running"), status("Running"), NOTHING),
        # The job starts.
        (status("Starting"), status("Running"), replace(NOTHING, start_seconds=40.0)),
        (
            status("Starting"),
            status("Running", conditions=condition("Suspended", "Resumed", "False", at(35))),
            replace(NOTHING, start_seconds=5.0),
        ),
        # A rank fails.
        (status("Running"), status("Running", ranks=ranks(at(39.5))), replace(NOTHING, detection_seconds=0.5)),
        (status("Running", ranks=ranks(at(39))), status("Stopping", ranks=ranks(at(39))), NOTHING),
        (status("Running"), status("Running", ranks=ranks(at(39.5), "Unknown")), NOTHING),
        # It restarts. Only a failure that no rank shows is detected with the restart.
        (status("Running"), restarted(record()), Transition(restart_reason="RankKilled", detection_seconds=10.0)),
        (status("Running", ranks=ranks(at(39))), restarted(record()), Transition(restart_reason="RankKilled")),
        (restarted(record()), restarted(record(), phase="Starting"), NOTHING),
        (restarted(record()), restarted(record(), phase="Running"), NOTHING),
        (
            restarted(record(lost=2.0)),
            restarted(record(lost=2.0), record(2, reason="OOMKilled", time=at(40))),
            Transition(restart_reason="OOMKilled", detection_seconds=0.0),
        ),
        # A user has requested it.
        (status("Running"), restarted(REQUESTED), Transition(restart_reason="RestartRequested")),
        (restarted(REQUESTED), restarted(record(reason="RestartRequested", lost=1.0), phase="Running"), NOTHING),
        # It has recovered.
        (restarted(record()), restarted(record(lost=1.25), phase="Running"), replace(NOTHING, recovery_seconds=1.25)),
        (restarted(record(lost=1.25)), restarted(record(lost=1.25), phase="Running"), NOTHING),
        # It ends.
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
            NOTHING,
        ),
        # On SageMaker another training job follows.
        (training_job(1), training_job(2, "SpotInterrupted"), Transition(restart_reason="SpotInterrupted")),
        (training_job(2, "SpotInterrupted"), training_job(2, "SpotInterrupted", phase="Running"), NOTHING),
        (training_job(1), training_job(2, "Suspended"), NOTHING),
        (
            training_job(2, "Suspended"),
            training_job(2, "Suspended", phase="Running"),
            replace(NOTHING, start_seconds=40.0),
        ),
    ],
)
def test_a_write_counts_what_is_new_in_it(before: Status, after: Status, expected: Transition) -> None:
    assert find_transition(before, after, CREATED_AT, CREATED_AT + 40) == expected


@pytest.mark.parametrize("time", ["", "yesterday", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", at(80)])
def test_a_time_that_a_user_has_edited_counts_nothing(time: str) -> None:
    failed = status("Running", ranks=ranks(time))
    assert find_transition(status("Running"), failed, CREATED_AT, CREATED_AT + 40) == NOTHING
    resumed = status("Running", conditions=condition("Suspended", "Resumed", "False", time))
    assert find_transition(status("Starting"), resumed, CREATED_AT, CREATED_AT + 40) == NOTHING


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, 1e300])
def test_an_impossible_duration_counts_nothing(seconds: float) -> None:
    running = restarted(record(lost=seconds), phase="Running")
    assert find_transition(restarted(record()), running, CREATED_AT, CREATED_AT + 40) == NOTHING
    assert find_transition(status("Starting"), status("Running"), CREATED_AT, CREATED_AT + seconds) == NOTHING


def test_a_reason_that_is_not_muster_s_own_becomes_other() -> None:
    forged = restarted(record(reason="X" * 64))
    assert find_transition(status("Running"), forged, CREATED_AT, CREATED_AT + 40).restart_reason == "Other"
    failed = status("Failed", conditions=condition("Failed", 'a"} 1\nmuster_jobs 7'))
    assert find_transition(status("Running"), failed, CREATED_AT, CREATED_AT + 40).end_reason == "Other"

"""Builders for the facts of a job on SageMaker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.api.launchers.per_node import PerNode
from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.job import Job, Metadata, Spec
from muster.api.spec.launcher import LauncherSpec
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.status.status import Status
from muster.core.outcome import Outcome
from muster.core.problem import Problem
from muster.core.status.training_job.summarise import summarise_training_job
from muster.core.training_job.decide import TrainingAction, decide_training_job, find_training_requeue_time
from muster.core.training_job.facts import (
    FailureKind,
    Location,
    RequestFailure,
    StatusPeriod,
    TrainingFacts,
    TrainingJob,
)
from muster.core.training_job.judge import judge_training_job
from muster.core.training_job.state import derive_training_state

T0 = 1_795_233_600.0  # 2026-11-21T04:00:00Z: the job was created
UID = "uid-1"
CRASH = "AlgorithmError: ExitCode 1"
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def job(
    *, suspend: bool = False, restarts: int | None = None, deadline: int | None = None, ttl_seconds: int | None = None
) -> Job:
    spec = Spec(
        backend="SageMaker",
        nodes=2,
        procs_per_node=1,
        launcher=LauncherSpec(per_node=PerNode()),
        command=("python", "train.py"),
        suspend=suspend,
        failure_policy=None if restarts is None else FailurePolicy(max_restarts=restarts),
        active_deadline_seconds=deadline,
        ttl_seconds_after_finished=ttl_seconds,
        sagemaker=SageMaker(region="us-west-2"),
    )
    return Job(metadata=Metadata(name="vit", uid=UID, generation=1), spec=spec)


def make_training_job(
    *secondary_statuses: str,
    attempt: int = 1,
    final_status: str = "",
    reason: str | None = None,
    ended_after: float = 10.0,
) -> TrainingJob:
    """Return a training job that had these secondary statuses for ten seconds each, and then `final_status`."""
    statuses = (*secondary_statuses, final_status) if final_status else secondary_statuses
    history = tuple(
        StatusPeriod(
            status, T0 + 10 * index, None if index == len(statuses) - 1 else T0 + 10 * (index + 1), f"{status} message"
        )
        for index, status in enumerate(statuses)
    )
    has_ended = final_status in ("Completed", "Failed", "Stopped")
    return TrainingJob(
        name=f"vit-{attempt}",
        arn=f"arn:{attempt}",
        status=final_status or "InProgress",
        secondary_status=statuses[-1],
        created_at=T0,
        started_at=T0 + 5 if "Training" in secondary_statuses else None,
        ended_at=T0 + ended_after if has_ended else None,
        history=history,
        failure_reason=reason,
    )


STARTING = make_training_job("Starting")
RUNNING = make_training_job("Starting", "Downloading", "Training")
COMPLETED_JOB = make_training_job("Starting", "Training", final_status="Completed")
CRASHED = make_training_job("Starting", "Training", final_status="Failed", reason=CRASH)
NO_CAPACITY = make_training_job("Starting", final_status="Failed", reason=CAPACITY)
STOPPING = make_training_job("Starting", "Training", final_status="Stopping")
STOPPED = make_training_job("Starting", "Training", final_status="Stopped")


def facts(training_job: TrainingJob | None = None, **changes: Any) -> TrainingFacts:
    current = TrainingFacts(
        created_at=T0,
        location=Location("us-west-2"),
        heartbeat_seconds=60.0,
        operator_started_at=T0 - 3600,
        training=training_job,
        has_finalizer=True,
    )
    return replace(current, **changes)


def request_failure(kind: FailureKind, at: float = T0, tries: int = 1, refused_seconds: float = 0.0) -> RequestFailure:
    return RequestFailure(kind, Problem(f"No{kind}", "the request failed"), at, tries, refused_seconds)


def reconcile_once(
    a_job: Job, previous: Status, current: TrainingFacts, now: float
) -> tuple[Outcome, tuple[TrainingAction, ...], Status]:
    """Reconcile the job once. Return the outcome, the actions and the status."""
    state = derive_training_state(a_job, previous, current, now)
    outcome = judge_training_job(a_job, previous, state, now)
    actions = decide_training_job(a_job, state, outcome, now)
    return outcome, actions, summarise_training_job(a_job, previous, state, outcome, actions, now)


def status_after(a_job: Job, *observations: TrainingFacts, now: float = T0) -> Status:
    """Return the status after one reconciliation with each of these facts, a second apart."""
    status = Status()
    for index, training_facts in enumerate(observations):
        status = reconcile_once(a_job, status, training_facts, now + index)[2]
    return status


def find_requeue_time(a_job: Job, previous: Status, current: TrainingFacts, now: float) -> float | None:
    """Return the time at which the job is reconciled without an event."""
    state = derive_training_state(a_job, previous, current, now)
    return find_training_requeue_time(a_job, previous, state, judge_training_job(a_job, previous, state, now), now)


NO_TRAINING_JOB = facts()
"""The facts before a training job exists."""

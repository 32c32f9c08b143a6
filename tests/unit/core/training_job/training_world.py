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
from muster.core.facts import Problem
from muster.core.outcome import Outcome
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
    *, suspend: bool = False, restarts: int | None = None, deadline: int | None = None, after: int | None = None
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
        ttl_seconds_after_finished=after,
        sagemaker=SageMaker(region="us-west-2"),
    )
    return Job(metadata=Metadata(name="vit", uid=UID, generation=1), spec=spec)


def training(
    *secondary: str, attempt: int = 1, ends: str = "", reason: str | None = None, at: float = 10.0
) -> TrainingJob:
    """Return a training job with these states, ten seconds each. `ends` is its final status, if it has ended."""
    words = (*secondary, ends) if ends else secondary
    history = tuple(
        StatusPeriod(word, T0 + 10 * index, None if index == len(words) - 1 else T0 + 10 * (index + 1), f"{word} it is")
        for index, word in enumerate(words)
    )
    over = ends in ("Completed", "Failed", "Stopped")
    return TrainingJob(
        name=f"vit-{attempt}",
        arn=f"arn:{attempt}",
        status=ends or "InProgress",
        secondary_status=words[-1],
        created_at=T0,
        started_at=T0 + 5 if "Training" in secondary else None,
        ended_at=T0 + at if over else None,
        history=history,
        failure_reason=reason,
    )


STARTING = training("Starting")
RUNNING = training("Starting", "Downloading", "Training")
DONE = training("Starting", "Training", ends="Completed")
CRASHED = training("Starting", "Training", ends="Failed", reason=CRASH)
NO_ROOM = training("Starting", ends="Failed", reason=CAPACITY)
STOPPING = training("Starting", "Training", ends="Stopping")
STOPPED = training("Starting", "Training", ends="Stopped")


def facts(result: TrainingJob | None = None, **changes: Any) -> TrainingFacts:
    current = TrainingFacts(
        created_at=T0,
        location=Location("us-west-2"),
        heartbeat_seconds=60.0,
        operator_started_at=T0 - 3600,
        training=result,
        has_finalizer=True,
    )
    return replace(current, **changes)


def request_failure(kind: FailureKind, at: float = T0, tries: int = 1, refused_seconds: float = 0.0) -> RequestFailure:
    return RequestFailure(kind, Problem(f"No{kind}", "it was not to be"), at, tries, refused_seconds)


def turn(
    asked: Job, previous: Status, current: TrainingFacts, now: float
) -> tuple[Outcome, tuple[TrainingAction, ...], Status]:
    """Return the outcome, the actions and the status."""
    state = derive_training_state(asked, previous, current, now)
    outcome = judge_training_job(asked, previous, state, now)
    actions = decide_training_job(asked, state, outcome, now)
    return outcome, actions, summarise_training_job(asked, previous, state, outcome, actions, now)


def status_after(asked: Job, *current: TrainingFacts, now: float = T0) -> Status:
    """Return the status after one reconciliation for each of these, a second apart."""
    status = Status()
    for index, each in enumerate(current):
        status = turn(asked, status, each, now + index)[2]
    return status


def wake(asked: Job, previous: Status, current: TrainingFacts, now: float) -> float | None:
    """Return the time at which a change without an event is possible."""
    state = derive_training_state(asked, previous, current, now)
    return find_training_requeue_time(asked, previous, state, judge_training_job(asked, previous, state, now), now)


BEGUN = facts()
"""No training job exists, and one is to be created."""

"""The way of a job on SageMaker, once around: look, judge, decide, tell, act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.status.training_job.summarise import summarise_training_job
from muster.core.training_job.course import as_found
from muster.core.training_job.decide import TrainingAction, decide_training_job, training_wake
from muster.core.training_job.facts import TrainingFacts
from muster.core.training_job.judge import judge_training_job
from muster.core.world import world_size
from muster.engine.apart import apart
from muster.engine.reconcile import LOOK_AGAIN_SECONDS, RANKS_AT_ONCE, StatusWriter


class TrainingBackend(Protocol):
    """Where a job's training jobs live, and its resource."""

    async def observe(self, job: Job, previous: Status) -> TrainingFacts:
        """What is known of the job now."""
        ...

    async def apply(self, job: Job, actions: Sequence[TrainingAction]) -> None:
        """Do what was decided. Doing it again changes nothing."""
        ...


@dataclass(frozen=True)
class TrainingReconcileResult:
    """`requeue_at` is when time alone may change something (Unix seconds; None: never).

    `is_over` says that the job's outcome is known and nothing of it is left to do.
    """

    status: Status
    requeue_at: float | None
    is_over: bool


async def reconcile_training_job(
    job: Job, previous: Status, backend: TrainingBackend, status_writer: StatusWriter, now: float
) -> TrainingReconcileResult:
    """Bring the job one step closer to its spec, and report its state."""
    facts = await backend.observe(job, previous)
    work_out = partial(_decide, job, previous, facts, now)
    decision = work_out() if world_size(job) <= RANKS_AT_ONCE else await apart(job.metadata.namespace, work_out)
    # What was decided is written before it is done: the operator that takes over after a crash finds it in the status.
    await status_writer.write(decision.result.status)
    await backend.apply(job, decision.actions)
    return decision.result


@dataclass(frozen=True)
class _Decision:
    """What follows from a job's facts: what is to be done, and the turn that it makes."""

    actions: Sequence[TrainingAction]
    result: TrainingReconcileResult


def _decide(job: Job, previous: Status, facts: TrainingFacts, now: float) -> _Decision:
    previous = as_found(previous, facts)
    judgement = judge_training_job(job, previous, facts, now)
    actions = decide_training_job(job, facts, judgement, now)
    status = summarise_training_job(job, previous, facts, judgement, actions, now)
    is_over = judgement.outcome.is_decided and judgement.outcome.settled and not actions
    times = (training_wake(job, previous, facts, judgement, now), now + LOOK_AGAIN_SECONDS if actions else None)
    requeue_at = min((at for at in times if at is not None), default=None)
    return _Decision(actions, TrainingReconcileResult(status, requeue_at, is_over))

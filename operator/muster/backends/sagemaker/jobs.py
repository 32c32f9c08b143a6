"""All jobs on SageMaker: a backend for each of them, and a farewell, for what runs is in no cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from muster.api.backends import TRAINING_JOB_FINALIZER
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job, Metadata
from muster.api.status.status import Status
from muster.api.timestamps import to_seconds
from muster.backends.base import LOOK_AGAIN_SECONDS, JobResource, Requeue, ResourceWriter
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.plan import TrainingPlan
from muster.backends.sagemaker.targets import location
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.core.actions import DeleteResource
from muster.core.facts import Problem
from muster.core.status.training_job.leaving import leaving, left_running
from muster.core.training_job.course import sagemaker_status_of
from muster.core.training_job.decide import (
    CreateTrainingJob,
    DeleteTrainingJob,
    HoldResource,
    ReleaseResource,
    StopTrainingJob,
    TrainingAction,
)
from muster.core.training_job.facts import Location, TrainingFacts
from muster.core.training_job.leaving import LetGo, Stop, decide_leaving
from muster.core.training_job.name import training_job_name

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SageMakerJobs:
    """`default_region` is the operator's, "" for none; `clock` gives Unix seconds.

    `admit` raises `InvalidResource` for a job that uses what its namespace may not.
    """

    backend: SageMakerBackend
    default_region: str
    admit: Callable[[Job], None]
    clock: Callable[[], float]

    def of(self, resource: JobResource, writer: ResourceWriter) -> TrainingJobBackend:
        """The backend of one job, for one time around."""
        return TrainingJobBackend(self, resource, writer)

    def forget(self, job_uid: str) -> None:
        """Drop what is held for a job whose resource was deleted."""
        self.backend.forget(job_uid)

    def close(self) -> None:
        """Another operator leads, or will."""
        self.backend.close()

    async def leave(self, resource: JobResource, writer: ResourceWriter) -> Requeue:
        """One turn of a resource that was deleted and that muster still holds. Raises what the writer raises."""
        now, previous = self.clock(), resource.status
        metadata = Metadata(
            name=resource.name,
            namespace=resource.namespace,
            uid=resource.uid,
            creation_timestamp=to_seconds(resource.created_at),
        )
        facts = await self.backend.observe_leaving(metadata, previous, self._where(resource))
        todo = decide_leaving(resource.uid, previous, facts, resource.deleted_at or now, now)
        await writer.write(leaving(metadata, previous, facts, todo, resource.generation, now))
        match todo:
            case LetGo():
                if todo.left_behind is not None:
                    why = todo.left_behind.problem.message
                    _log.warning("%s: %s", resource, " ".join(left_running(metadata, previous, facts, why).split()))
                self.backend.let_go(resource.uid)
                await writer.release(TRAINING_JOB_FINALIZER)
                return Requeue(None, is_over=True)
            case Stop():
                if facts.training is not None:
                    await self.backend.stop(metadata, facts.training.name, facts.seen_at or facts.location)
                return Requeue(now + LOOK_AGAIN_SECONDS, is_over=False)
            case _:
                return Requeue(todo.until, is_over=False)

    def _where(self, resource: JobResource) -> Location:
        """Where the spec puts a training job, for a status that doesn't tell."""
        if isinstance(resource.job, InvalidResource):
            return Location(self.default_region)
        try:
            # Anybody may put muster's finalizer on a job that never ran, and delete it.
            self.admit(resource.job)
        except InvalidResource:
            return Location(self.default_region)
        place = location(resource.job)
        return Location(place.region or self.default_region, place.assume_role_arn)


@dataclass(frozen=True)
class TrainingJobBackend:
    """A job's backend for one turn: SageMaker, and the resource's finalizer."""

    jobs: SageMakerJobs
    resource: JobResource
    writer: ResourceWriter
    plan: TrainingPlan = field(default_factory=TrainingPlan)

    async def observe(self, job: Job, previous: Status) -> TrainingFacts:
        facts = await self.jobs.backend.observe(job, previous, self._where(job), is_held=self.resource.is_held)
        if not _may_be_followed(previous, facts):
            return facts
        # Between two training jobs the spec may have become another one.
        try:
            self.jobs.admit(job)
        except InvalidResource as refused:
            return replace(facts, refusal=Problem("Invalid", "; ".join(map(str, refused.problems))))
        return facts

    async def apply(self, job: Job, actions: Sequence[TrainingAction]) -> None:
        backend, previous = self.jobs.backend, self.resource.status
        for action in actions:
            match action:
                case HoldResource():
                    await self.writer.hold(TRAINING_JOB_FINALIZER)
                    backend.begins(job.metadata.uid)
                case ReleaseResource():
                    if await backend.is_over(job.metadata, previous, self._where(job)):
                        await self.writer.release(TRAINING_JOB_FINALIZER)
                case CreateTrainingJob():
                    withdrawal = Withdrawal()
                    with self.writer.told_when_outdated(withdrawal.withdraw):
                        await backend.create(job, action, withdrawal)
                case StopTrainingJob():
                    name = training_job_name(job.metadata, action.attempt)
                    await backend.stop(job.metadata, name, action.where)
                case DeleteTrainingJob():
                    record, where = sagemaker_status_of(previous), location(job)
                    where = where if record is None else Location(record.region, record.assume_role_arn)
                    await backend.delete(job.metadata, action, where)
                case DeleteResource():
                    await self.writer.delete()
                case _:
                    assert_never(action)

    def _where(self, job: Job) -> Location:
        """The spec's place, or as the operator itself what its namespace may not ask as: the spec may have changed."""
        place = location(job)
        if place.assume_role_arn is None:
            return place
        try:
            self.jobs.admit(job)
        except InvalidResource:
            return Location(place.region)
        return place


def _may_be_followed(previous: Status, facts: TrainingFacts) -> bool:
    """Whether another training job may be made now. One that runs goes on, whatever is allowed since."""
    is_free = facts.training is None or facts.training.is_over
    return is_free and facts.blind is None and previous.final_condition is None

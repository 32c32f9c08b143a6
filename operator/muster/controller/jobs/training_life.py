"""The life of SageMaker jobs in the operator: turns as any job's, and a farewell, for what runs is in no cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job, Metadata
from muster.api.status.status import Status
from muster.api.timestamps import to_seconds
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.targets import location
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.controller.jobs.requeue import Requeue
from muster.controller.status.writer import StatusWriter
from muster.core.actions import DeleteResource
from muster.core.facts import Problem
from muster.core.judge import final_condition
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
from muster.engine.reconcile import LOOK_AGAIN_SECONDS
from muster.engine.training_reconcile import reconcile_training_job
from muster.objects.kubernetes.resource import Resource
from muster.render.sagemaker.apply_defaults import apply_defaults

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingLife:
    """`default_region` is the operator's, "" for none; `clock` gives Unix seconds."""

    backend: SageMakerBackend
    default_region: str
    clock: Callable[[], float]

    def apply_defaults(self, job: Job) -> Job:
        """The job as the plan takes it. Raises `InvalidResource`."""
        return apply_defaults(job, self.default_region)

    async def reconcile(
        self, job: Job, resource: Resource, status_writer: StatusWriter, admit: Callable[[Job], None]
    ) -> Requeue:
        """One turn of a job. `admit` is that of all controllers' tools. Raises what the status writer raises."""
        backend = _TrainingJobBackend(self, resource, status_writer, admit)
        result = await reconcile_training_job(job, resource.status, backend, status_writer, self.clock())
        until = min((at for at in (result.requeue_at, status_writer.due_at) if at is not None), default=None)
        return Requeue(until, result.is_over and until is None)

    async def leave(self, resource: Resource, status_writer: StatusWriter, admit: Callable[[Job], None]) -> Requeue:
        """One turn of a resource that was deleted and that muster still holds. Raises what the status writer raises."""
        now, previous = self.clock(), resource.status
        metadata = Metadata(
            name=resource.name,
            namespace=resource.namespace,
            uid=resource.uid,
            creation_timestamp=to_seconds(resource.created_at),
        )
        facts = await self.backend.observe_leaving(metadata, previous, self._where(resource, admit))
        todo = decide_leaving(resource.uid, previous, facts, resource.deleted_at or now, now)
        await status_writer.write(leaving(metadata, previous, facts, todo, resource.generation, now))
        match todo:
            case LetGo():
                if todo.left_behind is not None:
                    why = todo.left_behind.problem.message
                    _log.warning("%s: %s", resource, " ".join(left_running(metadata, previous, facts, why).split()))
                self.backend.let_go(resource.uid)
                await status_writer.release()
                return Requeue(None, is_over=True)
            case Stop():
                if facts.training is not None:
                    await self.backend.stop(metadata, facts.training.name, facts.seen_at or facts.location)
                return Requeue(now + LOOK_AGAIN_SECONDS, is_over=False)
            case _:
                return Requeue(todo.until, is_over=False)

    def _where(self, resource: Resource, admit: Callable[[Job], None]) -> Location:
        """Where the spec puts a training job, for a status that doesn't tell."""
        if isinstance(resource.job, InvalidResource):
            return Location(self.default_region)
        try:
            # Anybody may put muster's finalizer on a job that never ran, and delete it.
            admit(resource.job)
        except InvalidResource:
            return Location(self.default_region)
        place = location(resource.job)
        return Location(place.region or self.default_region, place.assume_role_arn)


@dataclass(frozen=True)
class _TrainingJobBackend:
    """A job's backend for one turn: SageMaker, and the resource's finalizer."""

    life: TrainingLife
    resource: Resource
    status_writer: StatusWriter
    admit: Callable[[Job], None]

    async def observe(self, job: Job, previous: Status) -> TrainingFacts:
        facts = await self.life.backend.observe(job, previous, self._where(job), is_held=self.resource.is_held)
        if not _may_be_followed(previous, facts):
            return facts
        # Between two training jobs the spec may have become another one.
        try:
            self.admit(job)
        except InvalidResource as refused:
            return replace(facts, refusal=Problem("Invalid", "; ".join(map(str, refused.problems))))
        return facts

    async def apply(self, job: Job, actions: Sequence[TrainingAction]) -> None:
        backend, previous = self.life.backend, self.resource.status
        for action in actions:
            match action:
                case HoldResource():
                    await self.status_writer.hold()
                    backend.begins(job.metadata.uid)
                case ReleaseResource():
                    if await backend.is_over(job.metadata, previous, self._where(job)):
                        await self.status_writer.release()
                case CreateTrainingJob():
                    withdrawal = Withdrawal()
                    with self.status_writer.told_when_outdated(withdrawal.withdraw):
                        await backend.create(job, action, withdrawal)
                case StopTrainingJob():
                    name = training_job_name(job.metadata, action.attempt)
                    await backend.stop(job.metadata, name, action.where)
                case DeleteTrainingJob():
                    record, where = sagemaker_status_of(previous), location(job)
                    where = where if record is None else Location(record.region, record.assume_role_arn)
                    await backend.delete(job.metadata, action, where)
                case DeleteResource():
                    await self.status_writer.delete()
                case _:
                    assert_never(action)

    def _where(self, job: Job) -> Location:
        """The spec's place, or as the operator itself what its namespace may not ask as: the spec may have changed."""
        place = location(job)
        if place.assume_role_arn is None:
            return place
        try:
            self.admit(job)
        except InvalidResource:
            return Location(place.region)
        return place


def _may_be_followed(previous: Status, facts: TrainingFacts) -> bool:
    """Whether another training job may be made now. One that runs goes on, whatever is allowed since."""
    is_free = facts.training is None or facts.training.is_over
    return is_free and facts.blind is None and final_condition(previous) is None

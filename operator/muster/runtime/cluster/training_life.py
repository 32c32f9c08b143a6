"""The life of SageMaker jobs in the operator: turns as any job's, and a farewell, for what runs is in no cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from muster.api.spec import Job, Metadata
from muster.api.status import Status
from muster.api.timestamps import to_seconds
from muster.backends.sagemaker.as_it_runs import as_it_runs
from muster.backends.sagemaker.backend import SageMakerBackend, whereabouts
from muster.plan.training_job import (
    CreateTrainingJob,
    DeleteTrainingJob,
    HoldResource,
    ReleaseResource,
    StopTrainingJob,
    TrainingAction,
)
from muster.plan.training_job_course import told_of
from muster.plan.training_job_facts import TrainingFacts
from muster.plan.training_job_leaving import LetGo, Stop, decide_leaving
from muster.runtime.cluster.journal import Journal
from muster.runtime.cluster.outlook import Outlook
from muster.runtime.cluster.resource import Resource
from muster.runtime.reconcile import LOOK_AGAIN_SECONDS
from muster.runtime.training_turn import reconcile_training_job
from muster.status.training_job_leaving import leaving


@dataclass(frozen=True)
class TrainingLife:
    """`default_region` is the operator's, "" for none; `clock` gives Unix seconds."""

    backend: SageMakerBackend
    default_region: str
    clock: Callable[[], float]

    def as_it_runs(self, job: Job) -> Job:
        """The job as the plan takes it. Raises `InvalidResource`."""
        return as_it_runs(job, self.default_region)

    async def turn(self, job: Job, resource: Resource, journal: Journal) -> Outlook:
        """One turn of a job. Raises what the journal raises."""
        hands = _Hands(self.backend, resource, journal)
        turn = await reconcile_training_job(job, resource.status, hands, journal, self.clock())
        until = min((at for at in (turn.wake_at, journal.due_at) if at is not None), default=None)
        return Outlook(until, turn.is_over and until is None)

    async def leave(self, resource: Resource, journal: Journal) -> Outlook:
        """One turn of a resource that was deleted and that muster still holds. Raises what the journal raises."""
        now, previous = self.clock(), resource.status
        metadata = Metadata(
            name=resource.name,
            namespace=resource.namespace,
            uid=resource.uid,
            creation_timestamp=to_seconds(resource.created_at),
        )
        facts = await self.backend.observe_leaving(metadata, previous)
        todo = decide_leaving(resource.uid, previous, facts, resource.deleted_at or now, now)
        await journal.write(leaving(previous, facts, todo, resource.generation, now))
        told = told_of(previous)
        match todo:
            case LetGo():
                await journal.release()
                return Outlook(None, is_over=True)
            case Stop():
                if told is not None:
                    await self.backend.stop(metadata, told.attempt, facts.whereabouts)
                return Outlook(now + LOOK_AGAIN_SECONDS, is_over=False)
            case _:
                return Outlook(todo.until, is_over=False)


@dataclass(frozen=True)
class _Hands:
    """A job's backend for one turn: SageMaker, and the resource's finalizer."""

    backend: SageMakerBackend
    resource: Resource
    journal: Journal

    async def observe(self, job: Job, previous: Status) -> TrainingFacts:
        return await self.backend.observe(job, previous, is_held=self.resource.is_held)

    async def apply(self, job: Job, actions: Sequence[TrainingAction]) -> None:
        for action in actions:
            match action:
                case HoldResource():
                    await self.journal.hold()
                case ReleaseResource():
                    await self.journal.release()
                case CreateTrainingJob():
                    await self.backend.create(job, action)
                case StopTrainingJob():
                    await self.backend.stop(job.metadata, action.attempt, whereabouts(job))
                case DeleteTrainingJob():
                    await self.backend.delete(job, action)
                case _:
                    assert_never(action)

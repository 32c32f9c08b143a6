"""The SageMaker backend of the operator. It also stops the training jobs of deleted resources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from muster.api.backends import TRAINING_JOB_FINALIZER
from muster.api.field_problems import InvalidResource
from muster.api.names import RESTART_ANNOTATION, SOURCE_ANNOTATION
from muster.api.spec.job import Job, Metadata
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp
from muster.backends.base import REQUEUE_SECONDS, JobResource, Requeue, ResourceWriter
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.decisions import TrainingDecisions
from muster.backends.sagemaker.targets import get_spec_location
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.core.actions import DeleteResource
from muster.core.problem import Problem
from muster.core.status.training_job.deletion import build_deletion_status, describe_left_running
from muster.core.training_job.attempt_state import get_sagemaker_status
from muster.core.training_job.decide import (
    AddFinalizer,
    CreateTrainingJob,
    DeleteTrainingJob,
    RemoveTrainingFinalizer,
    StopTrainingJob,
    TrainingAction,
)
from muster.core.training_job.deletion import RemoveFinalizer, Stop, decide_deletion
from muster.core.training_job.facts import Location, TrainingFacts
from muster.core.training_job.name import build_training_job_name

NO_RESTART_REQUESTS = (
    f"the annotation {RESTART_ANNOTATION} has no effect on SageMaker, where another attempt needs another training "
    "job: suspend and resume the job"
)

NO_EDITED_SOURCES = (
    f"the annotation {SOURCE_ANNOTATION} has no effect on SageMaker, where a training job keeps its code: change "
    "spec.source of the suspended job"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SageMakerJobs:
    """All jobs on SageMaker. `default_region` is the operator's, "" for none; `clock` returns Unix seconds.

    `admit` raises `InvalidResource` if the job's namespace may not use what the job requests.
    """

    backend: SageMakerBackend
    default_region: str
    admit: Callable[[Job], None]
    clock: Callable[[], float]

    def for_job(self, resource: JobResource, writer: ResourceWriter) -> TrainingJobBackend:
        """Return the backend of one job, for one reconcile."""
        return TrainingJobBackend(self, resource, writer)

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        self.backend.forget(job_uid)

    def close(self) -> None:
        """Stop watching all training jobs: this replica is no longer the leader."""
        self.backend.close()

    async def finalize(self, resource: JobResource, writer: ResourceWriter) -> Requeue:
        """Clean up for a deleted resource that has muster's finalizer. Raises the writer's errors."""
        now, previous = self.clock(), resource.status
        metadata = Metadata(
            name=resource.name,
            namespace=resource.namespace,
            uid=resource.uid,
            creation_timestamp=format_timestamp(resource.created_at),
        )
        facts = await self.backend.observe_deleted(metadata, previous, self._get_spec_location(resource))
        decision = decide_deletion(resource.uid, previous, facts, resource.deleted_at or now, now)
        await writer.write(build_deletion_status(metadata, previous, facts, decision, resource.generation, now))
        match decision:
            case RemoveFinalizer():
                if decision.unstopped_failure is not None:
                    reason = decision.unstopped_failure.problem.message
                    _log.warning(
                        "%s: %s", resource, " ".join(describe_left_running(metadata, previous, facts, reason).split())
                    )
                self.backend.stop_watching(resource.uid)
                await writer.remove_finalizer(TRAINING_JOB_FINALIZER)
                return Requeue(None, is_over=True)
            case Stop():
                if facts.training is not None:
                    await self.backend.stop(metadata, facts.training.name, facts.observed_location or facts.location)
                return Requeue(now + REQUEUE_SECONDS, is_over=False)
            case _:
                return Requeue(decision.until, is_over=False)

    def _get_spec_location(self, resource: JobResource) -> Location:
        """Return the location in the spec, for a status without a location."""
        if isinstance(resource.job, InvalidResource):
            return Location(self.default_region)
        try:
            # Users may add muster's finalizer to a job that was never admitted, and delete it.
            self.admit(resource.job)
        except InvalidResource:
            return Location(self.default_region)
        location = get_spec_location(resource.job)
        return Location(location.region or self.default_region, location.assume_role_arn)


@dataclass(frozen=True)
class TrainingJobBackend:
    """The backend of one job for one reconcile. It also sets and removes the resource's finalizer."""

    jobs: SageMakerJobs
    resource: JobResource
    writer: ResourceWriter
    decisions: TrainingDecisions = field(default_factory=TrainingDecisions)

    async def observe(self, job: Job, previous: Status) -> TrainingFacts:
        facts = await self.jobs.backend.observe(
            job, previous, self._get_spec_location(job), has_finalizer=self.resource.has_finalizer
        )
        if self.resource.restart_request is not None:
            facts = replace(facts, warnings=(*facts.warnings, NO_RESTART_REQUESTS))
        if self.resource.source_name is not None:
            facts = replace(facts, warnings=(*facts.warnings, NO_EDITED_SOURCES))
        if not _may_create_next(previous, facts):
            return facts
        # The spec may have changed between two training jobs.
        try:
            self.jobs.admit(job)
        except InvalidResource as error:
            return replace(facts, refusal=Problem("Invalid", "; ".join(map(str, error.problems))))
        return facts

    async def apply(self, job: Job, actions: Sequence[TrainingAction]) -> None:
        backend, previous = self.jobs.backend, self.resource.status
        for action in actions:
            match action:
                case AddFinalizer():
                    await self.writer.add_finalizer(TRAINING_JOB_FINALIZER)
                    backend.record_hold(job.metadata.uid)
                case RemoveTrainingFinalizer():
                    if await backend.is_over(job.metadata, previous, self._get_spec_location(job)):
                        await self.writer.remove_finalizer(TRAINING_JOB_FINALIZER)
                case CreateTrainingJob():
                    withdrawal = Withdrawal()
                    with self.writer.notify_when_outdated(withdrawal.withdraw):
                        await backend.create(job, action, withdrawal)
                case StopTrainingJob():
                    name = build_training_job_name(job.metadata, action.attempt)
                    await backend.stop(job.metadata, name, action.location)
                case DeleteTrainingJob():
                    record, location = get_sagemaker_status(previous), get_spec_location(job)
                    location = location if record is None else Location(record.region, record.assume_role_arn)
                    await backend.delete(job.metadata, action, location)
                case DeleteResource():
                    await self.writer.delete()
                case _:
                    assert_never(action)

    def _get_spec_location(self, job: Job) -> Location:
        """Return the location in the spec, without a role that the namespace may not use: the spec may have changed."""
        location = get_spec_location(job)
        if location.assume_role_arn is None:
            return location
        try:
            self.jobs.admit(job)
        except InvalidResource:
            return Location(location.region)
        return location


def _may_create_next(previous: Status, facts: TrainingFacts) -> bool:
    """Whether another training job may be created now. A running training job continues."""
    is_none_running = facts.training is None or facts.training.is_over
    return is_none_running and facts.observation_failure is None and previous.final_condition is None

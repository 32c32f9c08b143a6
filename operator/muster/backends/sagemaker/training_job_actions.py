"""Create, stop and delete a job's training jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job, Metadata
from muster.backends.sagemaker.job_state import JobState
from muster.backends.sagemaker.targets import get_spec_location, make_aws_access
from muster.backends.sagemaker.training_job_search import UnrecordedTrainingJob
from muster.backends.sagemaker.training_job_watcher import build_name_taken_problem
from muster.backends.sagemaker.withdrawal import Withdrawal, WorkWithdrawn
from muster.clients.aws.client import Aws
from muster.clients.aws.training_jobs import TrainingJobs
from muster.core.problem import Problem
from muster.core.training_job.facts import FailureKind, Location, RequestFailure
from muster.core.training_job.name import build_name_prefix, build_training_job_name, parse_attempt
from muster.diagnose.sagemaker.request_failures import add_tries, build_request_failure
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AlreadyExists, AwsError, NotFound, Unavailable
from muster.render.sagemaker.request.identity import has_job_tags
from muster.render.storage.errors import StorageError


class Requests(Protocol):
    """Prepares the requests of jobs."""

    async def prepare(self, job: Job, attempt: int, aws_access: AwsAccess) -> Mapping[str, object]:
        """Return CreateTrainingJob's body, after uploading everything that it references.

        Raises `InvalidResource`, `StorageError`, AwsError.
        """
        ...


@dataclass(frozen=True)
class TrainingJobActions:
    """Executes actions, and stores their results in the job's state. `clock` returns Unix seconds."""

    aws: Aws
    requests: Requests
    clock: Callable[[], float]

    async def create(self, job_state: JobState, job: Job, attempt: int, withdrawal: Withdrawal) -> None:
        """Create the training job, unless it exists or `withdrawal` cancels the request.

        The next observation shows the result.
        """
        aws_access = make_aws_access(get_spec_location(job), job.metadata)
        try:
            async with withdrawal.guard():
                body = await self.requests.prepare(job, attempt, aws_access)
        except WorkWithdrawn:
            job_state.withdrawn_name = build_training_job_name(job.metadata, attempt)
            return
        except InvalidResource as error:
            problem = Problem("Invalid", "; ".join(map(str, error.problems)))
            self._record_failure(job_state, RequestFailure(FailureKind.REFUSED, problem, self.clock()))
            return
        except StorageError as error:
            kind = FailureKind.SERVICE if error.is_retryable else FailureKind.REFUSED
            self._record_failure(job_state, RequestFailure(kind, Problem(error.reason, error.message), self.clock()))
            return
        except AwsError as error:
            self._record_failure(job_state, build_request_failure(error, self.clock()))
            return
        job_state.none_running, job_state.withdrawn_name = False, ""
        await self._record_result(job_state, self._send_create(job_state, job, attempt, body, aws_access))
        # Without a response, the request may not have finished.
        job_state.requested_at = self.clock()
        job_state.poll_soon()

    async def stop(self, job_state: JobState, metadata: Metadata, name: str, where: Location) -> None:
        """Stop a training job of the job."""
        jobs = self.aws.get_training_jobs(make_aws_access(where, metadata))
        await self._record_result(
            job_state, _ignore_missing(_apply_if_owned(job_state, metadata, jobs, name, jobs.stop))
        )
        job_state.poll_soon()

    async def delete(self, job_state: JobState, metadata: Metadata, name: str, where: Location) -> None:
        """Delete a training job that is over."""
        jobs = self.aws.get_training_jobs(make_aws_access(where, metadata))
        if await self._record_result(
            job_state, _ignore_missing(_apply_if_owned(job_state, metadata, jobs, name, jobs.delete))
        ):
            job_state.deleted_training_jobs.add(name)

    async def stop_unrecorded(self, job_state: JobState, training_job: UnrecordedTrainingJob) -> None:
        """Stop a running training job that the status doesn't record."""
        await self._record_result(
            job_state, _ignore_missing(self.aws.get_training_jobs(training_job.aws_access).stop(training_job.name))
        )

    async def _send_create(
        self, job_state: JobState, job: Job, attempt: int, body: Mapping[str, object], aws_access: AwsAccess
    ) -> None:
        metadata, jobs = job.metadata, self.aws.get_training_jobs(aws_access)
        name = build_training_job_name(metadata, attempt)
        try:
            await jobs.create(body)
            job_state.created_name = name
        except AlreadyExists:
            try:
                description = await jobs.describe(name)
                tags = await jobs.list_tags(description.arn)
            except NotFound as error:
                raise Unavailable(f"SageMaker reports that {name} exists, but can't describe it") from error
            if not has_job_tags(tags, metadata.uid, attempt):
                job_state.name_conflict = (name, build_name_taken_problem(name))
                return
        job_state.own_name = name

    async def _record_result(self, job_state: JobState, work: Awaitable[None]) -> bool:
        try:
            await work
        except AwsError as error:
            self._record_failure(job_state, build_request_failure(error, self.clock()))
            return False
        job_state.request_failure = None
        return True

    def _record_failure(self, job_state: JobState, request_failure: RequestFailure) -> None:
        job_state.request_failure = add_tries(request_failure, job_state.request_failure)


async def _apply_if_owned(
    job_state: JobState, metadata: Metadata, jobs: TrainingJobs, name: str, do: Callable[[str], Awaitable[None]]
) -> None:
    """Call `do` if the training job belongs to the job, by its tags."""
    if job_state.own_name != name:
        tags = await jobs.list_tags((await jobs.describe(name)).arn)
        attempt = parse_attempt(name, build_name_prefix(metadata))
        if attempt is None or not has_job_tags(tags, metadata.uid, attempt):
            job_state.name_conflict = (name, build_name_taken_problem(name))
            return
    await do(name)


async def _ignore_missing(work: Awaitable[None]) -> None:
    try:
        await work
    except NotFound:
        return

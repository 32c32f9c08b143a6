"""What is done about a job's training jobs: they are made, stopped and forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job, Metadata
from muster.backends.sagemaker.census import UnrecordedTrainingJob
from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.lookout import taken_by_others
from muster.backends.sagemaker.targets import location, place_of
from muster.backends.sagemaker.withdrawal import Withdrawal, Withdrawn
from muster.clients.aws.client import Aws
from muster.clients.aws.training_jobs import TrainingJobs
from muster.core.facts import Problem
from muster.core.training_job.facts import FailureKind, Location, RequestFailure
from muster.core.training_job.name import attempt_of, name_stem, training_job_name
from muster.diagnose.sagemaker.request_failures import counted, request_failure_of
from muster.objects.aws.errors import AlreadyExists, AwsError, NotFound, Unavailable
from muster.objects.aws.place import Place
from muster.render.sagemaker.request.identity import is_of
from muster.render.storage.errors import StorageError


class Requests(Protocol):
    """How a job becomes a request."""

    async def prepare(self, job: Job, attempt: int, place: Place) -> Mapping[str, object]:
        """CreateTrainingJob's body, with all that it names in its place.

        Raises `InvalidResource`, `StorageError`, AwsError.
        """
        ...


@dataclass(frozen=True)
class TrainingJobActions:
    """What an action came to stands in the job's ledger. `clock` gives Unix seconds."""

    aws: Aws
    requests: Requests
    clock: Callable[[], float]

    async def create(self, ledger: Ledger, job: Job, attempt: int, withdrawal: Withdrawal) -> None:
        """Have the training job made, or find that it is there. What comes between shows in the next facts.

        Until SageMaker is asked it may be withdrawn.
        """
        place = place_of(location(job), job.metadata)
        try:
            async with withdrawal.guard():
                body = await self.requests.prepare(job, attempt, place)
        except Withdrawn:
            ledger.unsent = training_job_name(job.metadata, attempt)
            return
        except InvalidResource as refused:
            problem = Problem("Invalid", "; ".join(map(str, refused.problems)))
            self._record_failure(ledger, RequestFailure(FailureKind.REFUSED, problem, self.clock()))
            return
        except StorageError as error:
            kind = FailureKind.SERVICE if error.may_pass else FailureKind.REFUSED
            self._record_failure(ledger, RequestFailure(kind, Problem(error.reason, error.message), self.clock()))
            return
        except AwsError as error:
            self._record_failure(ledger, request_failure_of(error, self.clock()))
            return
        ledger.is_clear, ledger.unsent = False, ""
        await self._do(ledger, self._make(ledger, job, attempt, body, place))
        # Without an answer it may be under way still.
        ledger.asked_at = self.clock()
        ledger.look_soon()

    async def stop(self, ledger: Ledger, metadata: Metadata, name: str, where: Location) -> None:
        """Have a training job of the job's stopped."""
        jobs = self.aws.training_jobs(place_of(where, metadata))
        await self._do(ledger, _unless_gone(_if_own(ledger, metadata, jobs, name, jobs.stop)))
        ledger.look_soon()

    async def delete(self, ledger: Ledger, metadata: Metadata, name: str, where: Location) -> None:
        """Have SageMaker forget a training job that is over."""
        jobs = self.aws.training_jobs(place_of(where, metadata))
        if await self._do(ledger, _unless_gone(_if_own(ledger, metadata, jobs, name, jobs.delete))):
            ledger.forgotten.add(name)

    async def stop_found(self, ledger: Ledger, unrecorded: UnrecordedTrainingJob) -> None:
        """Have a training job stopped that runs and that the status doesn't tell of."""
        await self._do(ledger, _unless_gone(self.aws.training_jobs(unrecorded.place).stop(unrecorded.name)))

    async def _make(self, ledger: Ledger, job: Job, attempt: int, body: Mapping[str, object], place: Place) -> None:
        metadata, jobs = job.metadata, self.aws.training_jobs(place)
        name = training_job_name(metadata, attempt)
        try:
            await jobs.create(body)
            ledger.alone = name
        except AlreadyExists:
            try:
                description = await jobs.describe(name)
                tags = await jobs.tags(description.arn)
            except NotFound as gone:
                raise Unavailable(f"SageMaker says that {name} exists, and that it doesn't") from gone
            if not is_of(tags, metadata.uid, attempt):
                ledger.taken = (name, taken_by_others(name))
                return
        ledger.made = name

    async def _do(self, ledger: Ledger, work: Awaitable[None]) -> bool:
        try:
            await work
        except AwsError as error:
            self._record_failure(ledger, request_failure_of(error, self.clock()))
            return False
        ledger.request_failure = None
        return True

    def _record_failure(self, ledger: Ledger, request_failure: RequestFailure) -> None:
        ledger.request_failure = counted(request_failure, ledger.request_failure)


async def _if_own(
    ledger: Ledger, metadata: Metadata, jobs: TrainingJobs, name: str, do: Callable[[str], Awaitable[None]]
) -> None:
    """Do something to a training job that is the job's, by its tags, and nothing to another one."""
    if ledger.made != name:
        tags = await jobs.tags((await jobs.describe(name)).arn)
        attempt = attempt_of(name, name_stem(metadata))
        if attempt is None or not is_of(tags, metadata.uid, attempt):
            ledger.taken = (name, taken_by_others(name))
            return
    await do(name)


async def _unless_gone(work: Awaitable[None]) -> None:
    try:
        await work
    except NotFound:
        return

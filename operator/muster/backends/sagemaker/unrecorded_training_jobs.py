"""Find training jobs that the job's status doesn't record: another client may have changed the status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muster.api.spec.job import Metadata
from muster.backends.sagemaker.job_state import JobState
from muster.backends.sagemaker.targets import Target, compute_earliest_creation_time
from muster.backends.sagemaker.training_job_search import TrainingJobSearch, UnrecordedTrainingJob
from muster.backends.sagemaker.training_job_watcher import NOT_SEEN_YET, ObservedTrainingJob, TrainingJobWatcher
from muster.core.problem import Problem
from muster.core.training_job.attempt_state import CREATION_SECONDS
from muster.core.training_job.backoff import compute_retry_time
from muster.core.training_job.facts import FailureKind, RequestFailure
from muster.diagnose.sagemaker.request_failures import add_tries, build_request_failure
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AwsError


@dataclass(frozen=True)
class UnrecordedTrainingJobs:
    """Finds and observes training jobs. `operator_started_at` is the time at which this process became the leader."""

    search: TrainingJobSearch
    watcher: TrainingJobWatcher
    clock: Callable[[], float]
    operator_started_at: float

    async def observe(
        self, job_state: JobState, metadata: Metadata, aws_accesses: tuple[AwsAccess, ...]
    ) -> ObservedTrainingJob:
        """Search `aws_accesses` for an unrecorded training job, and observe it until it is over."""
        if job_state.unrecorded_training_job is None and not await self._search(job_state, metadata, aws_accesses):
            return ObservedTrainingJob(observation_failure=job_state.search_failure)
        unrecorded = job_state.unrecorded_training_job
        if unrecorded is None:
            return ObservedTrainingJob()
        target = Target(
            metadata.uid,
            unrecorded.attempt,
            unrecorded.name,
            (unrecorded.aws_access,),
            compute_earliest_creation_time(metadata.creation_timestamp),
        )
        observed = await self.watcher.observe(job_state, target)
        # Search again: other training jobs of this job may run.
        if observed.observation_failure is None and (observed.training is None or observed.training.is_over):
            job_state.unrecorded_training_job, job_state.search_failure = (
                None,
                RequestFailure(FailureKind.SERVICE, NOT_SEEN_YET, self.clock()),
            )
            return ObservedTrainingJob(observation_failure=job_state.search_failure)
        return observed

    def search_again(self, job_state: JobState, unrecorded: UnrecordedTrainingJob) -> None:
        """Search again, because this training job is being stopped."""
        problem_text = (
            f"Training job {unrecorded.name} in {unrecorded.aws_access}, which the status doesn't record, is being "
            "stopped"
        )
        job_state.unrecorded_training_job = None
        self._record_failure(
            job_state, RequestFailure(FailureKind.SERVICE, Problem("TrainingJobRuns", problem_text), self.clock())
        )

    def may_appear_until(self, requested_at: float) -> float:
        """Return the time until which a requested training job may appear, even if an earlier leader requested it."""
        return max(requested_at, self.operator_started_at) + CREATION_SECONDS

    async def _search(self, job_state: JobState, metadata: Metadata, aws_accesses: tuple[AwsAccess, ...]) -> bool:
        """Search for an unrecorded training job; return whether the search succeeded."""
        now = self.clock()
        if job_state.search_failure is not None and now < compute_retry_time(metadata.uid, job_state.search_failure):
            return False
        # A training job that was requested a moment ago may not be listed yet.
        if now < self.may_appear_until(job_state.requested_at):
            job_state.search_failure = RequestFailure(FailureKind.SERVICE, NOT_SEEN_YET, now)
            return False
        try:
            job_state.unrecorded_training_job = await self.search.find_running(
                metadata, aws_accesses, compute_earliest_creation_time(metadata.creation_timestamp)
            )
        except AwsError as error:
            self._record_failure(job_state, build_request_failure(error, now))
            return False
        job_state.none_running, job_state.search_failure = job_state.unrecorded_training_job is None, None
        return True

    def _record_failure(self, job_state: JobState, request_failure: RequestFailure) -> None:
        job_state.search_failure = add_tries(request_failure, job_state.search_failure)

"""Observe one training job: the account's poller reports its state, and its tags show whether it belongs to the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from muster.backends.sagemaker.job_state import JobState
from muster.backends.sagemaker.targets import Target
from muster.clients.aws.client import Aws
from muster.clients.aws.training_job_poller import Watch
from muster.core.problem import Problem
from muster.core.training_job.facts import FailureKind, Location, RequestFailure, TrainingJob
from muster.core.training_job.problems import MIN_REPORTED_TRIES
from muster.diagnose.sagemaker.request_failures import add_tries, build_request_failure
from muster.diagnose.sagemaker.training_job_facts import convert_description
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AlreadyExists, AwsError, NotFound
from muster.objects.aws.training_job import FINAL_STATUSES, TrainingJobDescription, TrainingJobSummary
from muster.render.sagemaker.request.identity import has_job_tags

MISSING_GRACE_SECONDS = 600.0
"""A missing training job counts as existing this long: a running one can't be deleted (API_DeleteTrainingJob)."""

NOT_SEEN_YET = Problem("NotSeenYet", "muster has no response of SageMaker yet")


@dataclass(frozen=True)
class ObservedTrainingJob:
    """A training job, observed at `aws_access`.

    `observation_failure`: it can't be observed. `refresh_failure`: the last request failed, so the state is old.
    `name_conflict`: another training job has its name. Without `training` and `observation_failure`, the training job
    doesn't exist.
    """

    training: TrainingJob | None = None
    aws_access: AwsAccess | None = None
    observation_failure: RequestFailure | None = None
    refresh_failure: RequestFailure | None = None
    name_conflict: Problem | None = None

    @property
    def observed_location(self) -> Location | None:
        """The region and role, without the external id."""
        return (
            None
            if self.aws_access is None
            else Location(self.aws_access.region, self.aws_access.assume_role_arn or None)
        )


@dataclass(frozen=True)
class TrainingJobWatcher:
    """Watches training jobs. It calls `wake` with a job's uid when its training job changes."""

    aws: Aws
    clock: Callable[[], float]
    wake: Callable[[str], None]

    async def observe(self, job_state: JobState, target: Target) -> ObservedTrainingJob:
        """Return the training job's current state, and watch it until it is over."""
        # A training job that is over never changes.
        if job_state.ended_training_job is not None and job_state.ended_training_job.name == target.name:
            return ObservedTrainingJob(convert_description(job_state.ended_training_job), job_state.watched_at)
        watch, aws_access = self._watch(job_state, target)
        stale = _find_problem(watch, self.clock())
        description = watch.observation.present
        if description is None or description.name != target.name:
            return (
                self._observe_missing(job_state, target, aws_access, stale)
                if watch.observation.is_missing
                else self._make_unobserved(stale)
            )
        job_state.missing_since = None
        is_known_owner = description.arn == target.arn and (
            job_state.name_conflict is None or job_state.name_conflict[0] != target.name
        )
        if not is_known_owner and job_state.own_name != target.name:
            name_conflict = await self._check_owner(job_state, target, aws_access, description.arn)
            if name_conflict is not None:
                return name_conflict
        if not description.has_ended:
            training = _apply_listed_status(convert_description(description), watch.observation.summary, description)
            return ObservedTrainingJob(training, aws_access, refresh_failure=stale)
        job_state.ended_training_job, job_state.ended_at = description, self.clock()
        job_state.stop_watching()
        return ObservedTrainingJob(convert_description(description), aws_access)

    def _make_unobserved(self, stale_failure: RequestFailure | None) -> ObservedTrainingJob:
        return ObservedTrainingJob(
            observation_failure=stale_failure or RequestFailure(FailureKind.SERVICE, NOT_SEEN_YET, self.clock())
        )

    def _observe_missing(
        self, job_state: JobState, target: Target, aws_access: AwsAccess, stale_failure: RequestFailure | None
    ) -> ObservedTrainingJob:
        """Handle a training job that doesn't exist at `aws_access`."""
        other_accesses = target.aws_accesses[target.aws_accesses.index(aws_access) + 1 :]
        if other_accesses:
            # Try the next region or role: the status may be forged, or older than the training job.
            if self.clock() >= target.may_appear_until:
                self._watch_at(job_state, target, other_accesses[0])
            return self._make_unobserved(stale_failure)
        if job_state.own_name == target.name:
            return self._make_unobserved(stale_failure)
        return (
            ObservedTrainingJob(refresh_failure=stale_failure)
            if self._is_deleted(job_state, target)
            else ObservedTrainingJob(observation_failure=self._make_deleted_problem(target, aws_access))
        )

    def _is_deleted(self, job_state: JobState, target: Target) -> bool:
        """Whether the training job doesn't exist. Credentials of another account would cause the same response."""
        if job_state.missing_since is None:
            job_state.missing_since = self.clock()
        return target.arn is None or self.clock() >= job_state.missing_since + MISSING_GRACE_SECONDS

    def _make_deleted_problem(self, target: Target, aws_access: AwsAccess) -> RequestFailure:
        problem_text = (
            f"SageMaker has no training job {target.name} in {aws_access} any more: it was deleted, or "
            "the operator's credentials belong to another account"
        )
        return RequestFailure(
            FailureKind.SERVICE, Problem(NotFound.reason, problem_text), self.clock(), MIN_REPORTED_TRIES
        )

    async def _check_owner(
        self, job_state: JobState, target: Target, aws_access: AwsAccess, arn: str
    ) -> ObservedTrainingJob | None:
        """Check by its tags that the training job belongs to the job. Return the problem; None if it does."""
        if job_state.name_conflict is not None and job_state.name_conflict[0] == target.name:
            return ObservedTrainingJob(name_conflict=job_state.name_conflict[1])
        try:
            tags = await self.aws.get_training_jobs(aws_access).list_tags(arn)
        except AwsError as error:
            job_state.tags_failure = add_tries(build_request_failure(error, self.clock()), job_state.tags_failure)
            return ObservedTrainingJob(observation_failure=job_state.tags_failure)
        job_state.tags_failure = None
        if has_job_tags(tags, target.uid, target.attempt):
            job_state.own_name = target.name
            return None
        problem = build_name_taken_problem(target.name)
        job_state.name_conflict = (target.name, problem)
        return ObservedTrainingJob(name_conflict=problem)

    def _watch(self, job_state: JobState, target: Target) -> tuple[Watch, AwsAccess]:
        watch, aws_access = job_state.watch, job_state.watched_at
        if watch is not None and aws_access in target.aws_accesses and watch.name == target.name:
            return watch, aws_access
        return self._watch_at(job_state, target, target.aws_accesses[0]), target.aws_accesses[0]

    def _watch_at(self, job_state: JobState, target: Target, aws_access: AwsAccess) -> Watch:
        previous = job_state.watch
        watch = self.aws.get_poller(aws_access).watch(target.name, target.since, partial(self.wake, target.uid))
        job_state.watch, job_state.watched_at = watch, aws_access
        # Close the previous watch last: a poller stops with its last watch, and a new one lists all jobs again.
        if previous is not None:
            previous.close()
        return watch


def _apply_listed_status(
    training: TrainingJob, summary: TrainingJobSummary | None, description: TrainingJobDescription
) -> TrainingJob:
    """Replace an older status by the status in the newest list: one request lists many training jobs.

    A list doesn't contain the reason of an end, or the cost, so only Describe reports an end.
    """
    if summary is None or summary.modified_at <= description.modified_at or summary.status in FINAL_STATUSES:
        return training
    return replace(
        training, status=summary.status, secondary_status=summary.secondary_status or training.secondary_status
    )


def _find_problem(watch: Watch, now: float) -> RequestFailure | None:
    """Return the problem that makes the observation outdated, if any."""
    error = watch.problem
    if error is None:
        return None
    failure = build_request_failure(error, now)
    return RequestFailure(failure.kind, failure.problem, now, MIN_REPORTED_TRIES, watch.refused_seconds)


def build_name_taken_problem(name: str) -> Problem:
    """Return the problem that another training job has this name."""
    problem_text = (
        f"Training job {name} exists, and its tags show that it doesn't belong to this job. Delete the training job "
        "(aws sagemaker delete-training-job), or rename this job."
    )
    return Problem(AlreadyExists.reason, problem_text)

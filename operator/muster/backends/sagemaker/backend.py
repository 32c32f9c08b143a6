"""Run jobs as training jobs of Amazon SageMaker: observe them, and execute actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from muster.api.spec.job import Job, Metadata
from muster.api.status.status import Status
from muster.api.timestamps import parse_timestamp
from muster.backends.sagemaker.job_state import JobState
from muster.backends.sagemaker.orphans import Orphans
from muster.backends.sagemaker.rank_reports import LogSource, RankReports
from muster.backends.sagemaker.targets import (
    Target,
    find_target,
    get_aws_accesses,
    get_spec_location,
    list_remaining_training_jobs,
)
from muster.backends.sagemaker.training_job_actions import Requests, TrainingJobActions
from muster.backends.sagemaker.training_job_search import TrainingJobSearch
from muster.backends.sagemaker.training_job_watcher import ObservedTrainingJob, TrainingJobWatcher
from muster.backends.sagemaker.unrecorded_training_jobs import UnrecordedTrainingJobs
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.clients.aws.client import Aws
from muster.core.training_job.attempt_state import find_requested_attempt, get_sagemaker_status
from muster.core.training_job.decide import CreateTrainingJob, DeleteTrainingJob
from muster.core.training_job.facts import FAILED, Location, TrainingFacts, TrainingJob
from muster.core.training_job.name import build_training_job_name
from muster.render.sagemaker.job_warnings import make_training_warnings
from muster.render.sagemaker.rank_reports import are_rank_numbers_unique, can_ranks_report

FINAL_LOG_SECONDS = 30.0
"""Wait at most this long for the last log lines of a training job, which may never arrive."""


@dataclass
class SageMakerBackend:
    """The training jobs of all jobs, while this replica is the leader.

    `clock` returns Unix seconds; `wake` is called with a job's uid when its training job changes.
    """

    aws: Aws
    requests: Requests
    rank_reports: RankReports
    clock: Callable[[], float]
    wake: Callable[[str], None]
    _operator_started_at: float = field(init=False)
    _watcher: TrainingJobWatcher = field(init=False)
    _unrecorded_training_jobs: UnrecordedTrainingJobs = field(init=False)
    _orphans: Orphans = field(init=False)
    _actions: TrainingJobActions = field(init=False)
    _job_states: dict[str, JobState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._operator_started_at = self.clock()
        self._watcher = TrainingJobWatcher(self.aws, self.clock, self.wake)
        self._unrecorded_training_jobs = UnrecordedTrainingJobs(
            TrainingJobSearch(self.aws), self._watcher, self.clock, self._operator_started_at
        )
        self._orphans = Orphans(self.aws)
        self._actions = TrainingJobActions(self.aws, self.requests, self.clock)

    def forget(self, job_uid: str) -> None:
        """Drop the state of a deleted job, and stop its training job if it is still watched."""
        job_state = self._job_states.pop(job_uid, None)
        if job_state is not None:
            if job_state.watch is not None and job_state.watched_at is not None:
                self._orphans.stop(job_uid, job_state.watch.name, job_state.watched_at)
            job_state.stop_watching()
        self.rank_reports.forget(job_uid)

    def stop_watching(self, job_uid: str) -> None:
        """Stop watching the job's training job: its resource may be deleted."""
        self._get_job_state(job_uid).stop_watching()

    def close(self) -> None:
        """Stop watching all training jobs: this replica is no longer the leader."""
        self._orphans.close()
        for uid, job_state in self._job_states.items():
            job_state.stop_watching()
            self.rank_reports.forget(uid)

    async def observe(self, job: Job, previous: Status, location: Location, *, has_finalizer: bool) -> TrainingFacts:
        """Observe the job's current training job, at the status' location, or at `location` from the spec."""
        metadata, uid, job_state = job.metadata, job.metadata.uid, self._get_job_state(job.metadata.uid)
        attempt, observed = find_requested_attempt(previous), ObservedTrainingJob()
        # Observe a finished job only if one of its training jobs may run.
        if attempt is not None and job_state.is_request_refused(metadata.generation):
            job_state.stop_watching()
        elif attempt is not None and (has_finalizer or previous.final_condition is None):
            observed = await self._watcher.observe(job_state, self._find_target(metadata, previous, attempt, location))
        elif attempt is None and has_finalizer and not job_state.none_running:
            observed = await self._unrecorded_training_jobs.observe(
                job_state, metadata, get_aws_accesses(metadata, previous, location)
            )
        else:
            job_state.stop_watching()
            self.rank_reports.forget(uid)
        result = (
            job_state.unrecorded_training_job.attempt
            if attempt is None and job_state.unrecorded_training_job is not None
            else None
        )
        attempt = attempt if result is None else result
        self._follow_logs(job, attempt, observed)
        if job_state.generation != job.metadata.generation:
            job_state.request_failure, job_state.generation = None, job.metadata.generation
        return replace(
            self._build_facts(metadata, previous, get_spec_location(job), job_state, observed),
            unrecorded_attempt=result,
            warnings=make_training_warnings(job),
            has_finalizer=has_finalizer,
            agents=() if attempt is None else self.rank_reports.get_agents(uid, attempt),
            remaining_names=list_remaining_training_jobs(metadata, previous, job_state.deleted_training_jobs),
            has_all_reports=attempt is None or self._are_logs_read(uid, attempt, job_state, observed.training),
        )

    async def observe_deleted(self, metadata: Metadata, previous: Status, location: Location) -> TrainingFacts:
        """Observe the training job of a deleted resource.

        `location` is from the spec, and may lack a region. If the training job in the status is over or
        missing, this searches for other training jobs with the job's names.
        """
        record, job_state, observed = (
            get_sagemaker_status(previous),
            self._get_job_state(metadata.uid),
            ObservedTrainingJob(),
        )
        aws_accesses = get_aws_accesses(metadata, previous, location)
        if record is not None and job_state.unrecorded_training_job is None:
            observed = await self._watcher.observe(
                job_state, self._find_target(metadata, previous, record.attempt, location)
            )
        is_over = observed.observation_failure is None and (observed.training is None or observed.training.is_over)
        if (
            aws_accesses
            and is_over
            and not job_state.excludes_others(metadata, 0 if record is None else record.attempt)
        ):
            unrecorded = await self._unrecorded_training_jobs.observe(job_state, metadata, aws_accesses)
            observed = observed if job_state.unrecorded_training_job is None else unrecorded
        return replace(self._build_facts(metadata, previous, location, job_state, observed), has_finalizer=True)

    def record_hold(self, job_uid: str) -> None:
        """Record that the resource has the finalizer. No training job runs yet, unless one is watched."""
        job_state = self._get_job_state(job_uid)
        job_state.none_running = job_state.watch is None

    async def is_over(self, metadata: Metadata, previous: Status, location: Location) -> bool:
        """Return whether no training job of the job runs. Stop one that the status doesn't record."""
        job_state = self._get_job_state(metadata.uid)
        if job_state.excludes_others(metadata, previous.current_attempt):
            return True
        await self._unrecorded_training_jobs.observe(
            job_state, metadata, get_aws_accesses(metadata, previous, location)
        )
        result = job_state.unrecorded_training_job
        if result is not None:
            self._unrecorded_training_jobs.search_again(job_state, result)
            await self._actions.stop_unrecorded(job_state, result)
        return job_state.none_running

    async def create(self, job: Job, action: CreateTrainingJob, withdrawal: Withdrawal) -> None:
        """Create the training job, unless it exists or `withdrawal` cancels the request.

        The next observation shows the result.
        """
        await self._actions.create(self._get_job_state(job.metadata.uid), job, action.attempt, withdrawal)

    async def stop(self, metadata: Metadata, name: str, location: Location) -> None:
        """Stop a training job of the job."""
        await self._actions.stop(self._get_job_state(metadata.uid), metadata, name, location)

    async def delete(self, metadata: Metadata, action: DeleteTrainingJob, location: Location) -> None:
        """Delete a training job that is over."""
        await self._actions.delete(self._get_job_state(metadata.uid), metadata, action.name, location)

    def _build_facts(
        self,
        metadata: Metadata,
        previous: Status,
        location: Location,
        job_state: JobState,
        observed_job: ObservedTrainingJob,
    ) -> TrainingFacts:
        """Return the facts about a training job; its resource may be deleted."""
        return TrainingFacts(
            created_at=parse_timestamp(metadata.creation_timestamp),
            location=location,
            heartbeat_seconds=self.rank_reports.heartbeat_seconds,
            operator_started_at=self._operator_started_at,
            training=observed_job.training,
            observation_failure=observed_job.observation_failure,
            refresh_failure=observed_job.refresh_failure,
            request_failure=job_state.request_failure,
            name_conflict=observed_job.name_conflict,
            observed_location=observed_job.observed_location,
            search_failure=job_state.search_failure,
            is_request_unsent=self._is_unsent(metadata, previous, job_state),
        )

    def _is_unsent(self, metadata: Metadata, previous: Status, job_state: JobState) -> bool:
        """Whether the training job in the status can't exist, because its request was not sent."""
        attempt = find_requested_attempt(previous)
        if attempt is None or job_state.withdrawn_name != build_training_job_name(metadata, attempt):
            return False
        return self.clock() >= self._unrecorded_training_jobs.may_appear_until(job_state.requested_at)

    def _get_job_state(self, uid: str) -> JobState:
        return self._job_states.setdefault(uid, JobState())

    def _find_target(self, metadata: Metadata, previous: Status, attempt: int, location: Location) -> Target:
        record = get_sagemaker_status(previous)
        requested_at = 0.0 if record is None or record.arn is not None else parse_timestamp(record.tried_at)
        return find_target(
            metadata, previous, attempt, location, self._unrecorded_training_jobs.may_appear_until(requested_at)
        )

    def _follow_logs(self, job: Job, attempt: int | None, observed_job: ObservedTrainingJob) -> None:
        training, aws_access = observed_job.training, observed_job.aws_access
        if attempt is None or training is None or aws_access is None or not training.has_trained:
            return
        source = LogSource(
            job,
            attempt,
            training.name,
            aws_access,
            is_over=training.is_over,
            has_failed=training.status == FAILED and are_rank_numbers_unique(job),
            has_reports=can_ranks_report(job),
        )
        self.rank_reports.follow(source, partial(self.wake, job.metadata.uid))

    def _are_logs_read(self, uid: str, attempt: int, job_state: JobState, training: TrainingJob | None) -> bool:
        if training is None or not training.is_over or not training.has_trained:
            return True
        return self.clock() >= job_state.ended_at + FINAL_LOG_SECONDS or self.rank_reports.is_complete(uid, attempt)

"""The backend's state of a job between two reconciles. A new leader starts with an empty state."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.spec.job import Metadata
from muster.backends.sagemaker.training_job_search import UnrecordedTrainingJob
from muster.clients.aws.training_job_poller import Watch
from muster.core.problem import Problem
from muster.core.training_job.facts import FailureKind, RequestFailure
from muster.core.training_job.name import build_training_job_name
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.training_job import TrainingJobDescription


@dataclass
class JobState:
    """The state of one job. Times are Unix seconds."""

    watch: Watch | None = None
    watched_at: AwsAccess | None = None
    """The region and role of `watch`."""

    missing_since: float | None = None
    """The time since which SageMaker reports that the watched training job doesn't exist."""

    tags_failure: RequestFailure | None = None
    """The failure to read the watched training job's tags; None after a success."""

    own_name: str = ""
    """The name of an existing training job that belongs to the job, even if it is not observed yet."""

    name_conflict: tuple[str, Problem] | None = None
    """The name of a training job that doesn't belong to this job, and the problem."""

    ended_training_job: TrainingJobDescription | None = None
    """The last training job that has ended."""

    ended_at: float = 0.0
    """When the end of `ended_training_job` was observed."""

    requested_at: float = 0.0
    """When the last request to create a training job was sent."""

    created_name: str = ""
    """The name of the training job that this process created last."""

    withdrawn_name: str = ""
    """The name of a training job whose request was withdrawn before it was sent."""

    unrecorded_training_job: UnrecordedTrainingJob | None = None
    """A training job that runs, but that the status doesn't record."""

    none_running: bool = False
    """Whether no training job runs, and none was requested since that observation."""

    search_failure: RequestFailure | None = None
    """The failure of the last search: it is unknown whether a training job runs."""

    request_failure: RequestFailure | None = None
    """The failure of the last action; None after a success."""

    generation: int = 0
    """The spec's generation at the last action."""

    deleted_training_jobs: set[str] = field(default_factory=set)
    """The names of deleted training jobs."""

    def excludes_others(self, metadata: Metadata, attempt: int) -> bool:
        """Whether at most this attempt's training job can run."""
        return self.none_running or self.created_name == build_training_job_name(metadata, attempt)

    def is_request_refused(self, generation: int) -> bool:
        """Whether muster refused the request before sending it: no training job exists until the spec changes."""
        is_unsent_generation = self.generation == generation and self.requested_at == 0 and not self.own_name
        refused = self.request_failure is not None and self.request_failure.kind is FailureKind.REFUSED
        return is_unsent_generation and refused and (self.watch is None or self.watch.observation.is_missing)

    def stop_watching(self) -> None:
        """Stop watching the training job."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def poll_soon(self) -> None:
        """Observe the watched training job again soon, after an action."""
        if self.watch is not None:
            self.watch.describe_soon()

"""What the backend remembers of a job between two turns, for as long as this process leads."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.spec.job import Metadata
from muster.backends.sagemaker.census import UnrecordedTrainingJob
from muster.clients.aws.sweep import Watch
from muster.core.facts import Problem
from muster.core.training_job.facts import FailureKind, RequestFailure
from muster.core.training_job.name import training_job_name
from muster.objects.aws.place import Place
from muster.objects.aws.training_job import Description


@dataclass
class Ledger:
    """`watched_at` is where `watch` looks.

    `made` is the name of a training job that exists and is the job's, though it may not have been seen yet.
    `taken` is one that exists and is somebody else's, with the words for that. `over` is the last one that was
    seen over, and `over_at` since when that is known. `asked_at` is when SageMaker was last asked to make one (Unix
    seconds), and `alone` the name of the one that was made then. `unsent` is the name of one that was decided on and
    withdrawn before SageMaker was asked. `is_clear` says that none runs, and that none was asked for since that was
    seen; `unclear` why that isn't known, where it had to be. `found` is one that runs and that the status doesn't tell
    of. `request_failure` is what the last action came to, None when it went well; `generation` is the spec's that it
    was about. `missing_since` is since when SageMaker says that there is none where there was one. `untagged` is why it
    isn't known whose the watched one is, None once its tags were read. `forgotten` are the training jobs that SageMaker
    forgot for muster.
    """

    watch: Watch | None = None
    watched_at: Place | None = None
    made: str = ""
    taken: tuple[str, Problem] | None = None
    over: Description | None = None
    over_at: float = 0.0
    request_failure: RequestFailure | None = None
    generation: int = 0
    missing_since: float | None = None
    asked_at: float = 0.0
    unsent: str = ""
    alone: str = ""
    is_clear: bool = False
    unclear: RequestFailure | None = None
    unrecorded: UnrecordedTrainingJob | None = None
    untagged: RequestFailure | None = None
    forgotten: set[str] = field(default_factory=set)

    def knows_of_no_other(self, metadata: Metadata, attempt: int) -> bool:
        """Whether this process knows by itself that none of the job's runs but, at most, this attempt's."""
        return self.is_clear or self.alone == training_job_name(metadata, attempt)

    def is_refused(self, generation: int) -> bool:
        """Whether nothing is to be seen before the spec changes: what it asks for was refused before it was sent."""
        is_of_this = self.generation == generation and self.asked_at == 0 and not self.made
        refused = self.request_failure is not None and self.request_failure.kind is FailureKind.REFUSED
        return is_of_this and refused and (self.watch is None or self.watch.observation.is_missing)

    def look_away(self) -> None:
        """Watch no training job any more."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def look_soon(self) -> None:
        """Something was done to the training job that is watched."""
        if self.watch is not None:
            self.watch.look()

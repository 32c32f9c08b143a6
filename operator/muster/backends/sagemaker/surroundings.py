"""Whether a training job of a job's runs that its status doesn't tell of: others may write a status, or restore one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muster.api.spec.job import Metadata
from muster.backends.sagemaker.census import Census, UnrecordedTrainingJob
from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.lookout import UNSEEN, Lookout, ObservedTrainingJob
from muster.backends.sagemaker.targets import Target, since
from muster.core.facts import Problem
from muster.core.training_job.backoff import retry_at
from muster.core.training_job.course import CREATION_SECONDS
from muster.core.training_job.facts import FailureKind, RequestFailure
from muster.diagnose.sagemaker.request_failures import counted, request_failure_of
from muster.objects.aws.errors import AwsError
from muster.objects.aws.place import Place


@dataclass(frozen=True)
class Surroundings:
    """`clock` gives Unix seconds; `looking_since` is when this process began to lead."""

    census: Census
    lookout: Lookout
    clock: Callable[[], float]
    looking_since: float

    async def look(self, ledger: Ledger, metadata: Metadata, places: tuple[Place, ...]) -> ObservedTrainingJob:
        """What is seen of one that runs in any of these places, `ledger.unrecorded` until it is over."""
        if ledger.unrecorded is None and not await self._search(ledger, metadata, places):
            return ObservedTrainingJob(blind=ledger.unclear)
        result = ledger.unrecorded
        if result is None:
            return ObservedTrainingJob()
        target = Target(metadata.uid, result.attempt, result.name, (result.place,), since(metadata.creation_timestamp))
        observed = await self.lookout.look(ledger, target)
        # There may be others.
        if observed.blind is None and (observed.training is None or observed.training.is_over):
            ledger.unrecorded, ledger.unclear = None, RequestFailure(FailureKind.SERVICE, UNSEEN, self.clock())
            return ObservedTrainingJob(blind=ledger.unclear)
        return observed

    def doubt(self, ledger: Ledger, unrecorded: UnrecordedTrainingJob) -> None:
        """One was found that has to be stopped: it is looked for again, until it is over."""
        words = (
            f"Training job {unrecorded.name}, of which the status doesn't tell, is being stopped in {unrecorded.place}"
        )
        ledger.unrecorded = None
        self._doubt(ledger, RequestFailure(FailureKind.SERVICE, Problem("TrainingJobRuns", words), self.clock()))

    def arrives_until(self, asked_at: float) -> float:
        """Until when a training job may come to be that was asked for then, or before by another process."""
        return max(asked_at, self.looking_since) + CREATION_SECONDS

    async def _search(self, ledger: Ledger, metadata: Metadata, places: tuple[Place, ...]) -> bool:
        """Whether it is known now whether one runs."""
        now = self.clock()
        if ledger.unclear is not None and now < retry_at(metadata.uid, ledger.unclear):
            return False
        # One that was asked for a moment ago isn't listed yet.
        if now < self.arrives_until(ledger.asked_at):
            ledger.unclear = RequestFailure(FailureKind.SERVICE, UNSEEN, now)
            return False
        try:
            ledger.unrecorded = await self.census.running(metadata, places, since(metadata.creation_timestamp))
        except AwsError as error:
            self._doubt(ledger, request_failure_of(error, now))
            return False
        ledger.is_clear, ledger.unclear = ledger.unrecorded is None, None
        return True

    def _doubt(self, ledger: Ledger, request_failure: RequestFailure) -> None:
        ledger.unclear = counted(request_failure, ledger.unclear)

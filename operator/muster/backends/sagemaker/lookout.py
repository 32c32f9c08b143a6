"""What is seen of one training job: by a sweep that looks at all of them, and by its tags, once, whose it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.targets import Target
from muster.clients.aws.client import Aws
from muster.clients.aws.sweep import Watch
from muster.core.facts import Problem
from muster.core.training_job.facts import FailureKind, Location, RequestFailure, TrainingJob
from muster.core.training_job.problems import WORTH_A_WORD
from muster.diagnose.sagemaker.described import training_job_of
from muster.diagnose.sagemaker.request_failures import counted, request_failure_of
from muster.objects.aws.errors import AlreadyExists, AwsError, NotFound
from muster.objects.aws.place import Place
from muster.objects.aws.training_job import ENDED, Description, Summary
from muster.render.sagemaker.request.identity import is_of

LOST_SECONDS = 600.0
"""How long a training job that was there is not given up: one that works can't be deleted (API_DeleteTrainingJob)."""

UNSEEN = Problem("NotSeenYet", "SageMaker has not been asked yet")


@dataclass(frozen=True)
class ObservedTrainingJob:
    """`training` None and not `blind`: there is none; `taken`: but somebody else's. It was seen at `place`."""

    training: TrainingJob | None = None
    place: Place | None = None
    blind: RequestFailure | None = None
    stale: RequestFailure | None = None
    taken: Problem | None = None

    @property
    def seen_at(self) -> Location | None:
        """The same, as the plan speaks of it."""
        return None if self.place is None else Location(self.place.region, self.place.assume_role_arn or None)


@dataclass(frozen=True)
class Lookout:
    """`clock` gives Unix seconds; `wake` is called with a job's uid when something new is seen of it."""

    aws: Aws
    clock: Callable[[], float]
    wake: Callable[[str], None]

    async def look(self, ledger: Ledger, target: Target) -> ObservedTrainingJob:
        """What is known of a training job now; it is watched from now on, until it is over."""
        # It never changes again.
        if ledger.over is not None and ledger.over.name == target.name:
            return ObservedTrainingJob(training_job_of(ledger.over), ledger.watched_at)
        watch, place = self._watch(ledger, target)
        stale = _problem(watch, self.clock())
        described = watch.observation.present
        if described is None or described.name != target.name:
            return self._missing(ledger, target, place, stale) if watch.observation.is_missing else self._unseen(stale)
        ledger.missing_since = None
        is_told = described.arn == target.arn and (ledger.taken is None or ledger.taken[0] != target.name)
        if not is_told and ledger.made != target.name:
            whose = await self._ask_whose(ledger, target, place, described.arn)
            if whose is not None:
                return whose
        if not described.has_ended:
            training = _as_listed(training_job_of(described), watch.observation.summary, described)
            return ObservedTrainingJob(training, place, stale=stale)
        ledger.over, ledger.over_at = described, self.clock()
        ledger.look_away()
        return ObservedTrainingJob(training_job_of(described), place)

    def _unseen(self, stale: RequestFailure | None) -> ObservedTrainingJob:
        return ObservedTrainingJob(blind=stale or RequestFailure(FailureKind.SERVICE, UNSEEN, self.clock()))

    def _missing(
        self, ledger: Ledger, target: Target, place: Place, stale: RequestFailure | None
    ) -> ObservedTrainingJob:
        """What there is to say of a training job that isn't where it is looked for."""
        following = target.places[target.places.index(place) + 1 :]
        if following:
            # The status may be forged, or older than the training job.
            if self.clock() >= target.arrives_until:
                self._watch_at(ledger, target, following[0])
            return self._unseen(stale)
        if ledger.made == target.name:
            return self._unseen(stale)
        return (
            ObservedTrainingJob(stale=stale)
            if self._is_gone(ledger, target)
            else ObservedTrainingJob(blind=self._lost(target, place))
        )

    def _is_gone(self, ledger: Ledger, target: Target) -> bool:
        """Whether it may be believed that there is none. With other credentials the answer may be the same."""
        if ledger.missing_since is None:
            ledger.missing_since = self.clock()
        return target.arn is None or self.clock() >= ledger.missing_since + LOST_SECONDS

    def _lost(self, target: Target, place: Place) -> RequestFailure:
        words = (
            f"SageMaker doesn't know training job {target.name} in {place} any more: it was deleted, or "
            "the operator's credentials are another account's"
        )
        return RequestFailure(FailureKind.SERVICE, Problem(NotFound.reason, words), self.clock(), WORTH_A_WORD)

    async def _ask_whose(self, ledger: Ledger, target: Target, place: Place, arn: str) -> ObservedTrainingJob | None:
        """What there is to say while a training job isn't known to be the job's; None when it is."""
        if ledger.taken is not None and ledger.taken[0] == target.name:
            return ObservedTrainingJob(taken=ledger.taken[1])
        try:
            tags = await self.aws.training_jobs(place).tags(arn)
        except AwsError as error:
            ledger.untagged = counted(request_failure_of(error, self.clock()), ledger.untagged)
            return ObservedTrainingJob(blind=ledger.untagged)
        ledger.untagged = None
        if is_of(tags, target.uid, target.attempt):
            ledger.made = target.name
            return None
        taken = taken_by_others(target.name)
        ledger.taken = (target.name, taken)
        return ObservedTrainingJob(taken=taken)

    def _watch(self, ledger: Ledger, target: Target) -> tuple[Watch, Place]:
        watch, place = ledger.watch, ledger.watched_at
        if watch is not None and place in target.places and watch.name == target.name:
            return watch, place
        return self._watch_at(ledger, target, target.places[0]), target.places[0]

    def _watch_at(self, ledger: Ledger, target: Target, place: Place) -> Watch:
        former = ledger.watch
        watch = self.aws.sweep(place).watch(target.name, target.since, partial(self.wake, target.uid))
        ledger.watch, ledger.watched_at = watch, place
        # Only now: a place that is not watched is listed anew.
        if former is not None:
            former.close()
        return watch


def _as_listed(training: TrainingJob, summary: Summary | None, described: Description) -> TrainingJob:
    """With what a later listing says: descriptions come a few a second, and many training jobs may change at once.

    Of an end the listing tells too little: why, and what it cost.
    """
    if summary is None or summary.modified_at <= described.modified_at or summary.status in ENDED:
        return training
    return replace(
        training, status=summary.status, secondary_status=summary.secondary_status or training.secondary_status
    )


def _problem(watch: Watch, now: float) -> RequestFailure | None:
    """Why nothing new is heard, once it is worth a word."""
    error = watch.problem
    if error is None:
        return None
    failure = request_failure_of(error, now)
    return RequestFailure(failure.kind, failure.problem, now, WORTH_A_WORD, watch.refused_seconds)


def taken_by_others(name: str) -> Problem:
    """What is said of a training job that bears a job's name and isn't the job's."""
    words = (
        f"A training job {name} is there, and it isn't this job's: its tags say otherwise. Names are never free again "
        "but by deleting a training job (aws sagemaker delete-training-job); or give this job another name."
    )
    return Problem(AlreadyExists.reason, words)

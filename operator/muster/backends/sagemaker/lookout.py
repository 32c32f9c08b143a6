"""What is seen of one training job: by a sweep that looks at all of them, and by its tags, once, whose it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from muster.aws.client import Aws
from muster.aws.errors import AlreadyExists, AwsError, NotFound
from muster.aws.place import Place
from muster.aws.sweep import Watch
from muster.aws.training_job import ENDED, Description, Summary
from muster.backends.sagemaker.described import training_job_of
from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.ownership import is_of
from muster.backends.sagemaker.setbacks import setback_of
from muster.plan.facts import Trouble
from muster.plan.training_job_facts import Obstacle, Setback, TrainingJob
from muster.plan.training_job_troubles import WORTH_A_WORD

LOST_SECONDS = 600.0
"""How long a training job that was there is not given up: one that works can't be deleted (API_DeleteTrainingJob)."""

_UNSEEN = Trouble("NotSeenYet", "SageMaker has not been asked yet")


@dataclass(frozen=True)
class Target:
    """A training job, and where it is. `since`: it was made no earlier. `is_known`: it is the job's, others said so."""

    uid: str
    attempt: int
    name: str
    place: Place
    since: datetime
    is_known: bool


@dataclass(frozen=True)
class Sight:
    """`training` None and not `blind`: there is none; `taken`: but somebody else's."""

    training: TrainingJob | None = None
    blind: Setback | None = None
    stale: Setback | None = None
    taken: Trouble | None = None


@dataclass(frozen=True)
class Lookout:
    """`clock` gives Unix seconds; `wake` is called with a job's uid when something new is seen of it."""

    aws: Aws
    clock: Callable[[], float]
    wake: Callable[[str], None]

    async def look(self, ledger: Ledger, target: Target) -> Sight:
        """What is known of a training job now; it is watched from now on, until it is over."""
        # It never changes again.
        if ledger.over is not None and ledger.over.name == target.name:
            return Sight(training_job_of(ledger.over))
        watch = self._watch(ledger, target)
        stale = _trouble(watch, self.clock())
        described = watch.sighting.present
        if described is None or described.name != target.name:
            if watch.sighting.is_missing and ledger.made != target.name:
                return Sight(stale=stale) if self._is_gone(ledger, target) else Sight(blind=self._lost(target))
            return Sight(blind=stale or Setback(Obstacle.SERVICE, _UNSEEN, self.clock()))
        ledger.missing_since = None
        if not target.is_known and ledger.made != target.name:
            whose = await self._ask_whose(ledger, target, described.arn)
            if whose is not None:
                return whose
        if not described.has_ended:
            return Sight(_as_listed(training_job_of(described), watch.sighting.summary, described), stale=stale)
        ledger.over, ledger.over_at = described, self.clock()
        ledger.look_away()
        return Sight(training_job_of(described))

    def _is_gone(self, ledger: Ledger, target: Target) -> bool:
        """Whether it may be believed that there is none. Who asks as somebody else may be told so, too."""
        if ledger.missing_since is None:
            ledger.missing_since = self.clock()
        return not target.is_known or self.clock() >= ledger.missing_since + LOST_SECONDS

    def _lost(self, target: Target) -> Setback:
        words = (
            f"SageMaker doesn't know training job {target.name} in {target.place} any more: somebody deleted it, or "
            "the operator's credentials are another account's"
        )
        return Setback(Obstacle.SERVICE, Trouble(NotFound.reason, words), self.clock(), WORTH_A_WORD)

    async def _ask_whose(self, ledger: Ledger, target: Target, arn: str) -> Sight | None:
        """What there is to say while a training job isn't known to be the job's; None when it is."""
        if ledger.taken is not None and ledger.taken[0] == target.name:
            return Sight(taken=ledger.taken[1])
        try:
            tags = await self.aws.training_jobs(target.place).tags(arn)
        except AwsError as error:
            return Sight(blind=setback_of(error, self.clock()))
        if is_of(tags, target.uid, target.attempt):
            ledger.made = target.name
            return None
        taken = taken_by_others(target.name)
        ledger.taken = (target.name, taken)
        return Sight(taken=taken)

    def _watch(self, ledger: Ledger, target: Target) -> Watch:
        if ledger.watch is None or (ledger.watch.name, ledger.watched_at) != (target.name, target.place):
            former = ledger.watch
            ledger.watch = self.aws.sweep(target.place).watch(target.name, target.since, partial(self.wake, target.uid))
            ledger.watched_at = target.place
            # Only now: a place that nobody looks at is begun anew, with all that it has.
            if former is not None:
                former.close()
        return ledger.watch


def _as_listed(training: TrainingJob, summary: Summary | None, described: Description) -> TrainingJob:
    """With what a later listing says: descriptions come a few a second, and many training jobs may change at once.

    Of an end the listing tells too little: why, and what it cost.
    """
    if summary is None or summary.modified_at <= described.modified_at or summary.status in ENDED:
        return training
    return replace(
        training, status=summary.status, secondary_status=summary.secondary_status or training.secondary_status
    )


def _trouble(watch: Watch, now: float) -> Setback | None:
    """Why nothing new is heard, once it is worth a word."""
    error = watch.trouble
    if error is None:
        return None
    told = setback_of(error, now)
    return Setback(told.obstacle, told.trouble, now, WORTH_A_WORD)


def taken_by_others(name: str) -> Trouble:
    """What is said of a training job that bears a job's name and isn't the job's."""
    words = (
        f"A training job {name} is there, and it isn't this job's: its tags say otherwise. Names are never free again "
        "but by deleting a training job (aws sagemaker delete-training-job); or give this job another name."
    )
    return Trouble(AlreadyExists.reason, words)

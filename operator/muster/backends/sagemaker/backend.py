"""Jobs as training jobs of Amazon SageMaker: what is known of them, and what is done about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from muster.api.spec.job import Job, Metadata
from muster.api.status.status import Status
from muster.api.timestamps import from_text
from muster.backends.sagemaker.census import Census
from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.lookout import Lookout, ObservedTrainingJob
from muster.backends.sagemaker.orphans import Orphans
from muster.backends.sagemaker.rank_news import LogSource, RankNews
from muster.backends.sagemaker.surroundings import Surroundings
from muster.backends.sagemaker.targets import Target, location, places_of, remains_of, target_of
from muster.backends.sagemaker.training_job_actions import Requests, TrainingJobActions
from muster.backends.sagemaker.withdrawal import Withdrawal
from muster.clients.aws.client import Aws
from muster.core.training_job.course import attempt_looked_at, sagemaker_status_of
from muster.core.training_job.decide import CreateTrainingJob, DeleteTrainingJob
from muster.core.training_job.facts import FAILED, Location, TrainingFacts, TrainingJob
from muster.core.training_job.name import training_job_name
from muster.render.sagemaker.notes import training_notes
from muster.render.sagemaker.rank_reports import launchers_tell, may_report

NEWS_SECONDS = 30.0
"""How long a training job that is over is waited for to be heard out: logs come seconds late, or never."""


@dataclass
class SageMakerBackend:
    """The training jobs of all jobs, for as long as this process leads.

    `clock` gives Unix seconds; `wake` is called with a job's uid when something new is known of it.
    """

    aws: Aws
    requests: Requests
    news: RankNews
    clock: Callable[[], float]
    wake: Callable[[str], None]
    _looking_since: float = field(init=False)
    _lookout: Lookout = field(init=False)
    _surroundings: Surroundings = field(init=False)
    _orphans: Orphans = field(init=False)
    _actions: TrainingJobActions = field(init=False)
    _ledgers: dict[str, Ledger] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._looking_since = self.clock()
        self._lookout = Lookout(self.aws, self.clock, self.wake)
        self._surroundings = Surroundings(Census(self.aws), self._lookout, self.clock, self._looking_since)
        self._orphans = Orphans(self.aws)
        self._actions = TrainingJobActions(self.aws, self.requests, self.clock)

    def forget(self, job_uid: str) -> None:
        """The resource was deleted. A training job that is still watched lost its finalizer."""
        ledger = self._ledgers.pop(job_uid, None)
        if ledger is not None:
            if ledger.watch is not None and ledger.watched_at is not None:
                self._orphans.stop(job_uid, ledger.watch.name, ledger.watched_at)
            ledger.look_away()
        self.news.forget(job_uid)

    def let_go(self, job_uid: str) -> None:
        """The job's resource may go: nothing of it runs, or there is nothing left to be done about it."""
        self._ledger(job_uid).look_away()

    def close(self) -> None:
        """Look at no training job any more: another operator leads, or will."""
        self._orphans.close()
        for uid, ledger in self._ledgers.items():
            ledger.look_away()
            self.news.forget(uid)

    async def observe(self, job: Job, previous: Status, where: Location, *, is_held: bool) -> TrainingFacts:
        """What is known of the job's present training job: where the status has it, or at `where`, the spec's place."""
        metadata, uid, ledger = job.metadata, job.metadata.uid, self._ledger(job.metadata.uid)
        attempt, observed = attempt_looked_at(previous), ObservedTrainingJob()
        # Of a job that is over nothing is to be learned, unless something of it may run.
        if attempt is not None and ledger.is_refused(metadata.generation):
            ledger.look_away()
        elif attempt is not None and (is_held or previous.final_condition is None):
            observed = await self._lookout.look(ledger, self._target(metadata, previous, attempt, where))
        elif attempt is None and is_held and not ledger.is_clear:
            observed = await self._surroundings.look(ledger, metadata, places_of(metadata, previous, where))
        else:
            ledger.look_away()
            self.news.forget(uid)
        result = ledger.unrecorded.attempt if attempt is None and ledger.unrecorded is not None else None
        attempt = attempt if result is None else result
        self._listen(job, attempt, observed)
        if ledger.generation != job.metadata.generation:
            ledger.request_failure, ledger.generation = None, job.metadata.generation
        return replace(
            self._facts(metadata, previous, location(job), ledger, observed),
            unrecorded_attempt=result,
            remarks=training_notes(job),
            is_held=is_held,
            agents=() if attempt is None else self.news.agents(uid, attempt),
            remains=remains_of(metadata, previous, ledger.forgotten),
            is_heard_out=attempt is None or self._is_heard_out(uid, attempt, ledger, observed.training),
        )

    async def observe_leaving(self, metadata: Metadata, previous: Status, where: Location) -> TrainingFacts:
        """What is known of the training job of a resource that was deleted, whatever its spec has become.

        `where` is the spec's place; no region: nowhere. Where the training job that the status tells of is over, or
        not there, all that bear the job's names are looked for.
        """
        record, ledger, observed = sagemaker_status_of(previous), self._ledger(metadata.uid), ObservedTrainingJob()
        places = places_of(metadata, previous, where)
        if record is not None and ledger.unrecorded is None:
            observed = await self._lookout.look(ledger, self._target(metadata, previous, record.attempt, where))
        is_free = observed.blind is None and (observed.training is None or observed.training.is_over)
        if places and is_free and not ledger.knows_of_no_other(metadata, 0 if record is None else record.attempt):
            around = await self._surroundings.look(ledger, metadata, places)
            observed = observed if ledger.unrecorded is None else around
        return replace(self._facts(metadata, previous, where, ledger, observed), is_held=True)

    def begins(self, job_uid: str) -> None:
        """The job's resource is held from now on. Nothing of it runs yet, unless it was held before and is watched."""
        ledger = self._ledger(job_uid)
        ledger.is_clear = ledger.watch is None

    async def is_over(self, metadata: Metadata, previous: Status, where: Location) -> bool:
        """Whether no training job of the job's runs any more, whatever the status tells; one that does is stopped."""
        ledger = self._ledger(metadata.uid)
        if ledger.knows_of_no_other(metadata, previous.current_attempt):
            return True
        await self._surroundings.look(ledger, metadata, places_of(metadata, previous, where))
        result = ledger.unrecorded
        if result is not None:
            self._surroundings.doubt(ledger, result)
            await self._actions.stop_found(ledger, result)
        return ledger.is_clear

    async def create(self, job: Job, action: CreateTrainingJob, withdrawal: Withdrawal) -> None:
        """Have the training job made, or find that it is there, unless it is withdrawn before SageMaker is asked.

        What comes between shows in the next facts.
        """
        await self._actions.create(self._ledger(job.metadata.uid), job, action.attempt, withdrawal)

    async def stop(self, metadata: Metadata, name: str, where: Location) -> None:
        """Have a training job of the job's stopped."""
        await self._actions.stop(self._ledger(metadata.uid), metadata, name, where)

    async def delete(self, metadata: Metadata, action: DeleteTrainingJob, where: Location) -> None:
        """Have SageMaker forget a training job that is over."""
        await self._actions.delete(self._ledger(metadata.uid), metadata, action.name, where)

    def _facts(
        self, metadata: Metadata, previous: Status, where: Location, ledger: Ledger, observed: ObservedTrainingJob
    ) -> TrainingFacts:
        """What is known of a training job that may run, whatever its resource has become."""
        return TrainingFacts(
            created_at=from_text(metadata.creation_timestamp),
            location=where,
            heartbeat_seconds=self.news.heartbeat_seconds,
            looking_since=self._looking_since,
            training=observed.training,
            blind=observed.blind,
            stale=observed.stale,
            request_failure=ledger.request_failure,
            taken=observed.taken,
            seen_at=observed.seen_at,
            unclear=ledger.unclear,
            is_unsent=self._is_unsent(metadata, previous, ledger),
        )

    def _is_unsent(self, metadata: Metadata, previous: Status, ledger: Ledger) -> bool:
        """Whether no request was sent for the training job in the status, so that it can't exist."""
        attempt = attempt_looked_at(previous)
        if attempt is None or ledger.unsent != training_job_name(metadata, attempt):
            return False
        return self.clock() >= self._surroundings.arrives_until(ledger.asked_at)

    def _ledger(self, uid: str) -> Ledger:
        return self._ledgers.setdefault(uid, Ledger())

    def _target(self, metadata: Metadata, previous: Status, attempt: int, where: Location) -> Target:
        record = sagemaker_status_of(previous)
        asked_at = 0.0 if record is None or record.arn is not None else from_text(record.tried_at)
        return target_of(metadata, previous, attempt, where, self._surroundings.arrives_until(asked_at))

    def _listen(self, job: Job, attempt: int | None, observed: ObservedTrainingJob) -> None:
        training, place = observed.training, observed.place
        if attempt is None or training is None or place is None or not training.has_trained:
            return
        source = LogSource(
            job,
            attempt,
            training.name,
            place,
            is_over=training.is_over,
            has_failed=training.status == FAILED and launchers_tell(job),
            has_reports=may_report(job),
        )
        self.news.follow(source, partial(self.wake, job.metadata.uid))

    def _is_heard_out(self, uid: str, attempt: int, ledger: Ledger, training: TrainingJob | None) -> bool:
        if training is None or not training.is_over or not training.has_trained:
            return True
        return self.clock() >= ledger.over_at + NEWS_SECONDS or self.news.is_complete(uid, attempt)

"""Jobs as training jobs of Amazon SageMaker: what is known of them, and doing what the plan decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from muster.api.problems import InvalidResource
from muster.api.sagemaker_spec import SageMaker
from muster.api.spec import Job, Metadata
from muster.api.status import Status
from muster.api.timestamps import from_text
from muster.aws.client import Aws
from muster.aws.errors import AlreadyExists, AwsError, NotFound, Unavailable
from muster.aws.place import Place
from muster.backends.sagemaker.asked_from import asked_from
from muster.backends.sagemaker.ledger import Ledger
from muster.backends.sagemaker.lookout import Lookout, Sight, Target, taken_by_others
from muster.backends.sagemaker.orphans import Orphans
from muster.backends.sagemaker.ownership import is_of
from muster.backends.sagemaker.rank_news import LogSource, RankNews
from muster.backends.sagemaker.rank_reports import launchers_tell, may_report
from muster.backends.sagemaker.setbacks import again, setback_of
from muster.plan.facts import Trouble
from muster.plan.outcome import final_condition
from muster.plan.training_job import CreateTrainingJob, DeleteTrainingJob
from muster.plan.training_job_course import attempt_looked_at, told_of
from muster.plan.training_job_facts import FAILED, Obstacle, Setback, TrainingFacts, TrainingJob, Whereabouts
from muster.plan.training_job_name import training_job_name
from muster.storage.trouble import StorageTrouble

NEWS_SECONDS = 30.0
"""How long a training job that is over is waited for to be heard out: logs come seconds late, or never."""

SINCE = timedelta(hours=1)
"""An earlier request may have made the training job that the last one found there."""


class Requests(Protocol):
    """How a job becomes a request."""

    async def prepare(self, job: Job, attempt: int, place: Place) -> Mapping[str, object]:
        """CreateTrainingJob's body, with all that it names in its place.

        Raises `InvalidResource`, `StorageTrouble`, AwsError.
        """
        ...


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
    _orphans: Orphans = field(init=False)
    _ledgers: dict[str, Ledger] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._looking_since = self.clock()
        self._lookout = Lookout(self.aws, self.clock, self.wake)
        self._orphans = Orphans(self.aws)

    def forget(self, job_uid: str) -> None:
        """The job's resource is gone. What is still looked at wasn't let go: somebody took muster's finalizer off."""
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

    async def observe(self, job: Job, previous: Status, *, is_held: bool) -> TrainingFacts:
        """What is known of the job's present training job. A sweep looks at all of them; only whose it is, is asked."""
        uid, ledger = job.metadata.uid, self._ledger(job.metadata.uid)
        attempt = attempt_looked_at(previous)
        sight = Sight()
        # Of a job that is over nothing is to be learned.
        if attempt is not None and final_condition(previous) is None:
            sight = await self._lookout.look(ledger, self._target(job, previous, attempt))
            self._listen(job, previous, attempt, sight.training)
        else:
            ledger.look_away()
            self.news.forget(uid)
        if ledger.generation != job.metadata.generation:
            ledger.setback, ledger.generation = None, job.metadata.generation
        return TrainingFacts(
            created_at=from_text(job.metadata.creation_timestamp),
            whereabouts=whereabouts(job),
            heartbeat_seconds=self.news.heartbeat_seconds,
            looking_since=self._looking_since,
            training=sight.training,
            blind=sight.blind,
            stale=sight.stale,
            setback=ledger.setback,
            taken=sight.taken,
            is_held=is_held,
            agents=() if attempt is None else self.news.agents(uid, attempt),
            remains=_remains(job.metadata, previous, ledger),
            is_heard_out=attempt is None or self._is_heard_out(uid, attempt, ledger, sight.training),
        )

    async def observe_leaving(self, metadata: Metadata, previous: Status, where: Whereabouts) -> TrainingFacts:
        """What is known of the training job of a resource that was deleted, whatever its spec has become.

        Others may write the status, too: so whose it is, is asked in any case, and where the status tells of none it
        is looked for at `where`, the spec's; no region: nowhere.
        """
        told, ledger = told_of(previous), self._ledger(metadata.uid)
        sight = Sight()
        if told is not None:
            where = Whereabouts(told.region, told.assume_role_arn)
            sight = await self._look_again(metadata, where, told.attempt, told.tried_at)
        elif where.region:
            sight = await self._search(metadata, where)
        return TrainingFacts(
            created_at=from_text(metadata.creation_timestamp),
            whereabouts=where,
            heartbeat_seconds=self.news.heartbeat_seconds,
            looking_since=self._looking_since,
            training=sight.training,
            blind=sight.blind,
            stale=sight.stale,
            setback=ledger.setback,
            taken=sight.taken,
            is_held=True,
        )

    async def create(self, job: Job, action: CreateTrainingJob) -> None:
        """Have the training job made, or find that it is there. What comes between shows in the next facts."""
        metadata, place = job.metadata, _place(whereabouts(job), job.metadata)
        ledger = self._ledger(metadata.uid)
        try:
            body = await self.requests.prepare(job, action.attempt, place)
        except InvalidResource as refused:
            trouble = Trouble("Invalid", "; ".join(map(str, refused.problems)))
            self._set_back(ledger, Setback(Obstacle.REFUSED, trouble, self.clock()))
            return
        except StorageTrouble as error:
            obstacle = Obstacle.SERVICE if error.may_pass else Obstacle.REFUSED
            self._set_back(ledger, Setback(obstacle, Trouble(error.reason, error.message), self.clock()))
            return
        except AwsError as error:
            self._set_back(ledger, setback_of(error, self.clock()))
            return
        await self._do(ledger, self._make(job, action.attempt, body, place))
        ledger.look_soon()

    async def stop(self, metadata: Metadata, name: str, where: Whereabouts) -> None:
        """Have a training job of the job's stopped."""
        ledger = self._ledger(metadata.uid)
        await self._do(ledger, _unless_gone(self.aws.training_jobs(_place(where, metadata)).stop(name)))
        ledger.look_soon()

    async def delete(self, metadata: Metadata, action: DeleteTrainingJob, where: Whereabouts) -> None:
        """Have SageMaker forget a training job that is over."""
        ledger, jobs = self._ledger(metadata.uid), self.aws.training_jobs(_place(where, metadata))
        if await self._do(ledger, _unless_gone(jobs.delete(action.name))):
            ledger.forgotten.add(action.name)

    async def _search(self, metadata: Metadata, where: Whereabouts) -> Sight:
        """The last of the attempts' training jobs, of which the status says nothing: they are counted from 1."""
        ledger = self._ledger(metadata.uid)
        while True:
            sight = await self._look_again(metadata, where, ledger.searched, metadata.creation_timestamp)
            if sight.training is None or not sight.training.is_over:
                return sight
            ledger.searched += 1

    async def _look_again(self, metadata: Metadata, where: Whereabouts, attempt: int, tried_at: str) -> Sight:
        since = datetime.fromtimestamp(from_text(tried_at), UTC) - SINCE
        name = training_job_name(metadata.name, metadata.uid, attempt)
        target = Target(metadata.uid, attempt, name, _place(where, metadata), since, is_known=False)
        return await self._lookout.look(self._ledger(metadata.uid), target)

    async def _make(self, job: Job, attempt: int, body: Mapping[str, object], place: Place) -> None:
        metadata, jobs = job.metadata, self.aws.training_jobs(place)
        ledger, name = self._ledger(metadata.uid), training_job_name(metadata.name, metadata.uid, attempt)
        try:
            await jobs.create(body)
        except AlreadyExists:
            try:
                found = await jobs.describe(name)
                tags = await jobs.tags(found.arn)
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
            self._set_back(ledger, setback_of(error, self.clock()))
            return False
        ledger.setback = None
        return True

    def _set_back(self, ledger: Ledger, setback: Setback) -> None:
        ledger.setback = again(setback, ledger.setback)

    def _ledger(self, uid: str) -> Ledger:
        return self._ledgers.setdefault(uid, Ledger())

    def _target(self, job: Job, previous: Status, attempt: int) -> Target:
        told, metadata = told_of(previous), job.metadata
        name = training_job_name(metadata.name, metadata.uid, attempt)
        at = from_text(metadata.creation_timestamp if told is None else told.tried_at)
        is_known = told is not None and told.attempt == attempt and told.arn is not None
        since = datetime.fromtimestamp(at, UTC) - SINCE
        return Target(metadata.uid, attempt, name, _place(made_at(job, previous, attempt), metadata), since, is_known)

    def _listen(self, job: Job, previous: Status, attempt: int, training: TrainingJob | None) -> None:
        if training is None or not training.has_trained:
            return
        source = LogSource(
            job,
            attempt,
            training.name,
            _place(made_at(job, previous, attempt), job.metadata),
            is_over=training.is_over,
            has_failed=training.status == FAILED and launchers_tell(job),
            has_reports=may_report(job),
        )
        self.news.follow(source, partial(self.wake, job.metadata.uid))

    def _is_heard_out(self, uid: str, attempt: int, ledger: Ledger, training: TrainingJob | None) -> bool:
        if training is None or not training.is_over or not training.has_trained:
            return True
        return self.clock() >= ledger.over_at + NEWS_SECONDS or self.news.is_complete(uid, attempt)


def whereabouts(job: Job) -> Whereabouts:
    """Where the job's next training job is made; its region is known once it is taken as it runs."""
    block = job.spec.sagemaker or SageMaker()
    return Whereabouts(block.region or "", block.assume_role_arn)


def made_at(job: Job, previous: Status, attempt: int) -> Whereabouts:
    """Where an attempt's training job is: the spec may name another place since, for the next one."""
    told = told_of(previous)
    if told is None or told.attempt != attempt:
        return whereabouts(job)
    return Whereabouts(told.region, told.assume_role_arn)


def _remains(metadata: Metadata, previous: Status, ledger: Ledger) -> tuple[str, ...]:
    """What there may still be of a job that is over."""
    told = told_of(previous)
    if told is None or final_condition(previous) is None:
        return ()
    # One that was never seen as the job's own may be somebody else's, of the same name.
    attempts = [one.attempt for one in told.earlier if one.status]
    attempts += [told.attempt] if told.arn is not None else []
    # Made anew: others may write the status, too.
    names = (training_job_name(metadata.name, metadata.uid, attempt) for attempt in attempts)
    return tuple(name for name in names if name not in ledger.forgotten)


def _place(where: Whereabouts, metadata: Metadata) -> Place:
    return asked_from(where.region, where.assume_role_arn, metadata.namespace)


async def _unless_gone(work: Awaitable[None]) -> None:
    try:
        await work
    except NotFound:
        return

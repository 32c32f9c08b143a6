"""The way of a job, once around: look, decide, act, tell. The same for every backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from muster.api.spec import Job
from muster.api.status import Status
from muster.plan.actions import Action
from muster.plan.decide import decide, next_wake
from muster.plan.facts import JobFacts
from muster.plan.inference import infer
from muster.plan.outcome import Outcome, judge
from muster.plan.world import world_size
from muster.runtime.apart import apart
from muster.status.summarise import summarise

LOOK_AGAIN_SECONDS = 1.0
"""After something was done: what follows from it, and by when, shows in the facts of the next look only."""

RANKS_AT_ONCE = 1000
"""What follows from the facts of so many ranks is worked out in the event loop itself, in about 20 ms."""


class Backend(Protocol):
    """Where a job's nodes live."""

    async def observe(self, job: Job) -> JobFacts:
        """What is known of the job now."""
        ...

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided. Doing it again changes nothing."""
        ...


class StatusWriter(Protocol):
    """Where a job's status is kept."""

    async def write(self, status: Status) -> None:
        """Keep it. What `muster.status.news.is_news` says of it is kept when this returns; mere progress may wait."""
        ...


@dataclass(frozen=True)
class ReconcileResult:
    """What one time around found and says.

    `requeue_at` is when time alone may change something (Unix seconds; None: never), `is_over` that the job's outcome
    is known and nothing of it is left.
    """

    facts: JobFacts
    status: Status
    requeue_at: float | None
    is_over: bool


@dataclass(frozen=True)
class _Decision:
    """What follows from a job's facts."""

    facts: JobFacts
    outcome: Outcome
    actions: Sequence[Action]
    status: Status
    requeue_at: float | None

    def result(self, now: float) -> ReconcileResult:
        """The turn, once all was done."""
        is_over = self.outcome.is_decided and self.facts.is_gone
        # A silent agent sends no event, so check again after LOOK_AGAIN_SECONDS.
        times = (self.requeue_at, now + LOOK_AGAIN_SECONDS if self.actions else None)
        return ReconcileResult(
            self.facts, self.status, min((at for at in times if at is not None), default=None), is_over
        )


async def reconcile(  # noqa: PLR0917 - a turn's six ingredients, none of which belongs to another
    job: Job, previous: Status, backend: Backend, status_writer: StatusWriter, now: float, leader_term: int
) -> ReconcileResult:
    """Bring the job one step closer to its spec, and report its state. `leader_term` is the deciding Lease's."""
    observed = await backend.observe(job)
    work_out = partial(_decide, job, previous, observed, now, leader_term)
    # This takes a millisecond for a hundred ranks and seconds for a hundred thousand.
    decision = work_out() if world_size(job) <= RANKS_AT_ONCE else await apart(job.metadata.namespace, work_out)
    # What was decided is written before it is done: the operator that takes over after a crash finds it in the status.
    await status_writer.write(decision.status)
    await backend.apply(job, decision.actions)
    return decision.result(now)


def _decide(job: Job, previous: Status, observed: JobFacts, now: float, leader_term: int) -> _Decision:
    facts = infer(job, previous, observed, now)
    outcome = judge(job, previous, facts, now)
    actions = decide(job, facts, outcome, now, leader_term)
    status = summarise(job, previous, facts, outcome, actions, now)
    return _Decision(facts, outcome, actions, status, next_wake(job, facts, outcome, now))

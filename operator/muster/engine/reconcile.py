"""The way of a job, once around: look, decide, write, act. The same for every backend, which brings its own facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import LOOK_AGAIN_SECONDS, Act, Backend, Facts, Observation, Observed, Plan
from muster.core.world import world_size
from muster.engine.apart import apart

RANKS_AT_ONCE = 1000
"""What follows from the facts of so many ranks is worked out in the event loop itself, in about 20 ms."""


class StatusWriter(Protocol):
    """Where a job's status is kept."""

    async def write(self, status: Status) -> None:
        """Keep it. What `news.is_news` says of it is kept when this returns; mere progress may wait."""
        ...


@dataclass(frozen=True)
class ReconcileResult(Generic[Facts]):
    """What one time around found and says.

    `requeue_at` is when time alone may change something (Unix seconds; None: never), `is_over` that the job's outcome
    is known and nothing of it is left.
    """

    facts: Facts
    status: Status
    requeue_at: float | None
    is_over: bool


async def reconcile(
    job: Job, previous: Status, backend: Backend[Observed, Facts, Act], status_writer: StatusWriter, now: float
) -> ReconcileResult[Facts]:
    """Bring the job one step closer to its spec, and report its state."""
    observed = Observation(job, previous, await backend.observe(job, previous), now)
    work_out = partial(_decide, backend.plan, observed)
    # This takes a millisecond for a hundred ranks and seconds for a hundred thousand.
    actions, result = work_out() if world_size(job) <= RANKS_AT_ONCE else await apart(job.metadata.namespace, work_out)
    # What was decided is written before it is done: the operator that takes over after a crash finds it in the status.
    await status_writer.write(result.status)
    await backend.apply(job, actions)
    return result


def _decide(
    plan: Plan[Observed, Facts, Act], observed: Observation[Observed]
) -> tuple[Sequence[Act], ReconcileResult[Facts]]:
    known = plan.complete(observed)
    outcome = plan.judge(known)
    actions = plan.decide(known, outcome)
    status = plan.summarise(known, outcome, actions)
    # A silent agent sends no event, so check again after LOOK_AGAIN_SECONDS.
    times = (plan.next_wake(known, outcome), known.now + LOOK_AGAIN_SECONDS if actions else None)
    requeue_at = min((at for at in times if at is not None), default=None)
    return actions, ReconcileResult(known.facts, status, requeue_at, plan.is_over(known, outcome, actions))

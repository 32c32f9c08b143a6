"""Reconcile a job with any backend: observe, decide, write the status, act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import REQUEUE_SECONDS, ActionT, Backend, Decisions, FactsT, Observation, ObservedT
from muster.core.world import compute_world_size
from muster.engine.thread import run_in_thread

MAX_RANKS_IN_EVENT_LOOP = 1000
"""Up to this number of ranks, the event loop itself computes the decision, which takes about 20 ms."""


class StatusWriter(Protocol):
    """Stores a job's status."""

    async def write(self, status: Status) -> None:
        """Store the status. Significant changes are stored before this returns; progress may be delayed."""
        ...

    async def write_now(self, status: Status) -> None:
        """Store the status, also progress, before this returns."""
        ...


@dataclass(frozen=True)
class ReconcileResult(Generic[FactsT]):
    """The result of one reconciliation.

    `requeue_at` is when to reconcile again without a new event (Unix seconds; None: never). `is_over` is set once the
    job's result is final and nothing of it remains.
    """

    facts: FactsT
    status: Status
    requeue_at: float | None
    is_over: bool


async def reconcile(
    job: Job, previous: Status, backend: Backend[ObservedT, FactsT, ActionT], status_writer: StatusWriter, now: float
) -> ReconcileResult[FactsT]:
    """Bring the job one step closer to its spec, and report its state."""
    observed = Observation(job, previous, await backend.observe(job, previous), now)
    compute = partial(_compute_decision, backend.decisions, observed)
    # The computation takes a millisecond for a hundred ranks, and seconds for a hundred thousand.
    actions, result = (
        compute()
        if compute_world_size(job) <= MAX_RANKS_IN_EVENT_LOOP
        else await run_in_thread(job.metadata.namespace, compute)
    )
    # Write the decision before acting, so that a new leader finds it in the status after a crash. The write also finds
    # out whether the resource still exists unchanged.
    if actions:
        await status_writer.write_now(result.status)
    else:
        await status_writer.write(result.status)
    await backend.apply(job, actions)
    return result


def _compute_decision(
    decisions: Decisions[ObservedT, FactsT, ActionT], observation: Observation[ObservedT]
) -> tuple[Sequence[ActionT], ReconcileResult[FactsT]]:
    context = decisions.derive_facts(observation)
    outcome = decisions.judge(context)
    actions = decisions.decide(context, outcome)
    status = decisions.summarise(context, outcome, actions)
    # Actions may have no visible effect that sends an event, so check again after REQUEUE_SECONDS.
    times = (decisions.find_requeue_time(context, outcome), context.now + REQUEUE_SECONDS if actions else None)
    requeue_at = min((at for at in times if at is not None), default=None)
    return actions, ReconcileResult(context.facts, status, requeue_at, decisions.is_over(context, outcome, actions))

"""From facts to the status: what a reader of the resource is told."""

from collections.abc import Sequence

from muster.api.spec import Job
from muster.api.status import NodeCounts, RankStatus, StateRange, Status
from muster.api.timestamps import to_seconds
from muster.plan.actions import Action
from muster.plan.facts import JobFacts, NodeFacts, ProcessState
from muster.plan.nodes import has_ended, has_started, is_gone, is_ready, is_silent
from muster.plan.outcome import Outcome, Verdict, final_condition
from muster.status.conditions import conditions
from muster.status.details import rank_details
from muster.status.progress import progress_of
from muster.status.ranges import ranges
from muster.status.sentences import sentence
from muster.status.views import FAILED, PENDING, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, Picture


def summarise(  # noqa: PLR0917 - all that was found out and decided in a turn
    job: Job, previous: Status, facts: JobFacts, outcome: Outcome, actions: Sequence[Action], now: float
) -> Status:
    """The job's status at `now` (Unix seconds), of which `judge` said `outcome` and `decide` `actions`.

    A job that is over keeps the status with which it ended.
    """
    if final_condition(previous) is not None:
        return previous
    seen = Picture(job, previous, facts, outcome, now)
    progress = progress_of(seen)
    phase = _phase(seen)
    message = sentence(seen, progress)
    return Status(
        observed_generation=job.metadata.generation,
        phase=phase,
        message=message,
        conditions=conditions(seen, phase, message),
        nodes=NodeCounts(desired=job.spec.nodes, ready=sum(_is_up(node, facts, now) for node in facts.nodes)),
        ranks=_rank_status(seen),
        progress=progress,
        start_time=_start_time(seen),
        completion_time=to_seconds(now) if seen.outcome.is_decided and seen.outcome.settled else None,
    )


def _phase(seen: Picture) -> str:
    outcome = seen.outcome
    if outcome.is_decided and not outcome.settled:
        return "Stopping"
    if outcome.is_decided:
        return "Succeeded" if outcome.verdict is Verdict.SUCCEEDED else "Failed"
    if any(view.state not in (PENDING, STARTING) for view in seen.views):
        return "Running"
    absent = any(node.process.state is ProcessState.MISSING for node in seen.facts.nodes)
    return "Pending" if absent else "Starting"


def _is_up(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's agent is ready or runs ranks, as far as anybody knows."""
    if is_gone(node) or has_ended(node) or is_silent(node, facts, now):
        return False
    return is_ready(node) or has_started(node)


def _rank_status(seen: Picture) -> RankStatus:
    by_state: dict[str, list[int]] = {}
    for view in seen.views:
        by_state.setdefault(view.state, []).append(view.rank)
    order = (RUNNING, STARTING, PENDING, SUCCEEDED, FAILED, STOPPED, UNKNOWN)
    running, succeeded = (len(by_state.get(state, ())) for state in (RUNNING, SUCCEEDED))
    return RankStatus(
        world=len(seen.views),
        running=running,
        ready=f"{running + succeeded}/{len(seen.views)}",
        by_state=tuple(
            StateRange(state=state, count=len(by_state[state]), ranks=ranges(by_state[state]))
            for state in order
            if state in by_state
        ),
        details=rank_details(seen.views, seen.outcome),
    )


def _start_time(seen: Picture) -> str | None:
    """When the first rank started. Reports come in any order, so an earlier one may correct it."""
    starts = [view.facts.started_at for view in seen.views if view.facts is not None]
    first = min((at for at in starts if at is not None), default=None)
    known = (seen.previous.start_time, None if first is None else to_seconds(first))
    return min((text for text in known if text is not None), default=None)

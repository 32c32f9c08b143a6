"""From facts to the status: what a reader of the resource is told."""

from muster.api.spec import Job
from muster.api.status import NodeCounts, RankStatus, StateRange, Status
from muster.plan.deadlines import gang_has_started
from muster.plan.facts import JobFacts, NodeFacts, ProcessState
from muster.plan.nodes import has_ended, has_started, is_gone, is_ready, is_silent
from muster.plan.outcome import Outcome, Verdict, final_condition, judge
from muster.status.conditions import conditions
from muster.status.details import rank_details
from muster.status.progress import progress_of
from muster.status.ranges import ranges
from muster.status.sentences import sentence
from muster.status.timestamps import to_seconds
from muster.status.views import FAILED, PENDING, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, RankView, rank_views


def summarise(job: Job, previous: Status, facts: JobFacts, now: float) -> Status:
    """The job's status at `now` (Unix seconds). A job that is over keeps the status with which it ended."""
    if final_condition(previous) is not None:
        return previous
    outcome = judge(job, previous, facts, now)
    views = rank_views(job, facts, outcome, now)
    progress = progress_of(views, previous, facts, outcome)
    phase = _phase(previous, outcome, views, facts)
    message = sentence(job, outcome, views, facts, previous, progress, now)
    final = outcome.is_decided and outcome.settled
    return Status(
        observed_generation=job.metadata.generation,
        phase=phase,
        message=message,
        conditions=conditions(previous, outcome, phase, message, job.metadata.generation, now),
        nodes=NodeCounts(desired=job.spec.nodes, ready=sum(_is_up(node, facts, now) for node in facts.nodes)),
        ranks=_rank_status(views, outcome),
        progress=progress,
        start_time=_start_time(previous, views),
        completion_time=to_seconds(now) if final else None,
    )


def _phase(previous: Status, outcome: Outcome, views: tuple[RankView, ...], facts: JobFacts) -> str:
    if outcome.is_decided and not outcome.settled:
        return "Stopping"
    if outcome.is_decided:
        return "Succeeded" if outcome.verdict is Verdict.SUCCEEDED else "Failed"
    if gang_has_started(previous, facts) and any(view.state not in (PENDING, STARTING) for view in views):
        return "Running"
    absent = any(node.process.state is ProcessState.MISSING for node in facts.nodes)
    return "Pending" if absent else "Starting"


def _is_up(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's agent is ready or runs ranks, as far as anybody knows."""
    if is_gone(node) or has_ended(node) or is_silent(node, facts, now):
        return False
    return is_ready(node) or has_started(node)


def _rank_status(views: tuple[RankView, ...], outcome: Outcome) -> RankStatus:
    by_state: dict[str, list[int]] = {}
    for view in views:
        by_state.setdefault(view.state, []).append(view.rank)
    order = (RUNNING, STARTING, PENDING, SUCCEEDED, FAILED, STOPPED, UNKNOWN)
    running = len(by_state.get(RUNNING, ()))
    return RankStatus(
        world=len(views),
        running=running,
        ready=f"{running}/{len(views)}",
        by_state=tuple(
            StateRange(state=state, count=len(by_state[state]), ranks=ranges(by_state[state]))
            for state in order
            if state in by_state
        ),
        details=rank_details(views, outcome),
    )


def _start_time(previous: Status, views: tuple[RankView, ...]) -> str | None:
    """When the first rank started. Reports come in any order, so an earlier one may correct it."""
    starts = [view.facts.started_at for view in views if view.facts is not None and view.facts.started_at is not None]
    known = [] if previous.start_time is None else [previous.start_time]
    return min([*known, *(to_seconds(at) for at in starts)], default=None)

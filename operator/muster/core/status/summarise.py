"""Compute the status from the facts."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.api.status.status import REFUSED, NetworkStatus, NodeCounts, Placement, Status
from muster.api.timestamps import to_seconds
from muster.core.actions import Action, SendCommand
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import SCHEDULING_GATED, may_yet_speak
from muster.core.judge import Outcome, Verdict
from muster.core.status.after_the_end import after_the_end
from muster.core.status.conditions import conditions, refusal_of
from muster.core.status.network import network_of
from muster.core.status.progress import progress_of
from muster.core.status.rank_status import rank_status
from muster.core.status.sentences import sentence
from muster.core.status.views import PENDING, STARTING, UNKNOWN, Picture
from muster_worker.contract.schema import CommandKind


def summarise(  # noqa: PLR0917 - the results of one reconcile
    job: Job, previous: Status, facts: JobFacts, outcome: Outcome, actions: Sequence[Action], now: float
) -> Status:
    """The job's status at `now` (Unix seconds), from `judge`'s `outcome` and `decide`'s `actions`.

    A job that has ended keeps its status.
    """
    if previous.final_condition is not None:
        return after_the_end(previous, job.metadata.generation, now)
    if _knows_more(previous, facts, outcome, now):
        # After changing the spec, clients wait for observedGeneration.
        return previous.model_copy(update={"observed_generation": job.metadata.generation})
    picture = Picture(job, previous, facts, outcome, now)
    progress = progress_of(picture)
    phase = _phase(picture)
    message = sentence(picture, progress)
    return Status(
        observed_generation=job.metadata.generation,
        phase=phase,
        message=message,
        conditions=conditions(picture, phase, message),
        nodes=NodeCounts(desired=job.spec.nodes, ready=sum(_is_up(node, facts, now) for node in facts.nodes)),
        network=_network(picture),
        ranks=rank_status(picture),
        progress=progress,
        placement=_placement(picture),
        attempt=outcome.attempt if outcome.started or _starts(actions) else previous.attempt,
        start_time=_start_time(picture, actions),
        completion_time=to_seconds(now) if phase in ("Succeeded", "Failed") else None,
    )


def _knows_more(previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> bool:
    """Whether `previous` knows more than an operator that has just started and waits for a running job's reports.

    Otherwise the status would lose that ranks run, that one failed, and which was the first.
    """
    if previous.start_time is None or not any(may_yet_speak(node, facts, now) for node in facts.nodes):
        return False
    return not outcome.is_decided or previous.is_failing


def _starts(actions: Sequence[Action]) -> bool:
    return any(isinstance(action, SendCommand) and action.command.kind == CommandKind.START for action in actions)


def _phase(picture: Picture) -> str:
    outcome = picture.outcome
    if outcome.is_decided and not outcome.settled:
        return "Stopping"
    if outcome.verdict is Verdict.SUSPENDED:
        return "Suspended"
    if outcome.is_decided:
        return "Succeeded" if outcome.verdict is Verdict.SUCCEEDED else "Failed"
    return _phase_on_the_way(picture)


def _phase_on_the_way(picture: Picture) -> str:
    if refusal_of(picture) is not None:
        return REFUSED
    beyond = {view.state for view in picture.views} - {PENDING, STARTING}
    # Ranks without reports keep the phase Running, if they had it: nothing says that they ended.
    if beyond - {UNKNOWN} or (beyond and picture.previous.phase == "Running"):
        return "Running"
    if all(node.is_placed for node in picture.facts.nodes):
        return "Starting"
    return "Queued" if _is_queued(picture.job, picture.facts) else "Pending"


def _is_queued(job: Job, facts: JobFacts) -> bool:
    """Whether the nodes wait to be admitted together, by the job's queue or another gate."""
    if any(node.is_placed for node in facts.nodes):
        return False
    problems = (node.process.problem for node in facts.nodes)
    return job.spec.queue is not None or any(one is not None and one.reason == SCHEDULING_GATED for one in problems)


def _is_up(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's agent is ready or runs ranks, as far as muster knows."""
    if node.process.state is not ProcessState.RUNNING or node.has_ended or facts.is_silent(node, now):
        return False
    return node.is_ready or node.has_started


def _network(picture: Picture) -> NetworkStatus | None:
    nodes, before = picture.facts.nodes, picture.previous.network
    # A missing agent does not invalidate what it reported.
    if picture.outcome.started and before is not None and any(node.current_agent is None for node in nodes):
        return before
    return network_of(nodes)


def _placement(picture: Picture) -> Placement | None:
    """The record of deleted pods, which a new leader needs. A resumed job starts without it."""
    outcome = picture.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return None
    release = outcome.release
    if release is None:
        return picture.previous.placement
    return Placement(releases=release.count, replacement=release.replacement, released_at=to_seconds(release.at))


def _start_time(picture: Picture, actions: Sequence[Action]) -> str | None:
    """When the ranks were started. It is written before the commands: a job that has it is never started again."""
    outcome = picture.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return None
    if picture.previous.start_time is not None:
        return picture.previous.start_time
    if not outcome.started:
        return to_seconds(picture.now) if _starts(actions) else None
    # The status of a running job was emptied.
    starts = (view.facts.started_at for view in picture.views if view.facts is not None)
    return to_seconds(min((at for at in starts if at is not None), default=picture.now))

"""From facts to the status: what a reader of the resource is told."""

from collections.abc import Sequence

from muster.api.spec import Job
from muster.api.status import REFUSED, NetworkStatus, NodeCounts, Placement, Status
from muster.api.timestamps import to_seconds
from muster.plan.actions import Action, SendCommand
from muster.plan.facts import JobFacts, NodeFacts, ProcessState
from muster.plan.outcome import Outcome, Verdict
from muster.plan.problems import SCHEDULING_GATED, may_yet_speak
from muster.status.after_the_end import after_the_end
from muster.status.conditions import conditions, refusal_of
from muster.status.network import network_of
from muster.status.progress import progress_of
from muster.status.rank_status import rank_status
from muster.status.sentences import sentence
from muster.status.views import PENDING, STARTING, UNKNOWN, Picture
from muster_worker.contract import CommandKind


def summarise(  # noqa: PLR0917 - all that was found out and decided in a turn
    job: Job, previous: Status, facts: JobFacts, outcome: Outcome, actions: Sequence[Action], now: float
) -> Status:
    """The job's status at `now` (Unix seconds), of which `judge` said `outcome` and `decide` `actions`.

    A job that is over keeps the status with which it ended.
    """
    if previous.final_condition is not None:
        return after_the_end(previous, job.metadata.generation, now)
    if _is_told_better(previous, facts, outcome, now):
        # Clients wait for observedGeneration after they change the spec.
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


def _is_told_better(previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> bool:
    """Whether `previous` knows more than an operator that has just begun to hear the agents of a job that runs.

    It would take back what they told the one before it: that ranks run, that one failed and which was the first.
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
    # Whether ranks that are not heard of ever ran is not known: they still do if they did.
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
    """Whether the node's agent is ready or runs ranks, as far as anybody knows."""
    if node.process.state is not ProcessState.RUNNING or node.has_ended or facts.is_silent(node, now):
        return False
    return node.is_ready or node.has_started


def _network(picture: Picture) -> NetworkStatus | None:
    nodes, before = picture.facts.nodes, picture.previous.network
    # An agent that has left took back nothing of what it said.
    if picture.outcome.started and before is not None and any(node.current_agent is None for node in nodes):
        return before
    return network_of(nodes)


def _placement(picture: Picture) -> Placement | None:
    """What who takes over has to know of the gang's releases. A job that is resumed begins anew."""
    outcome = picture.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return None
    release = outcome.release
    if release is None:
        return picture.previous.placement
    return Placement(releases=release.count, replacement=release.replacement, released_at=to_seconds(release.at))


def _start_time(picture: Picture, actions: Sequence[Action]) -> str | None:
    """When the ranks were told to start. It is written before they are told: a job that has it is not started again."""
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

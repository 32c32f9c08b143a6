"""Compute the status from the facts."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.api.status.network import NetworkStatus
from muster.api.status.source import SourceStatus
from muster.api.status.status import REFUSED, RESTARTING, NodeCounts, Placement, Status
from muster.api.timestamps import format_timestamp
from muster.core.actions import Action, SendCommand
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import SCHEDULING_GATED, may_still_report
from muster.core.membership.members import format_members
from muster.core.outcome import Outcome, Verdict
from muster.core.status.conditions import build_conditions, find_refusal_before_start
from muster.core.status.elastic import build_elastic_status
from muster.core.status.ended_status import build_ended_status
from muster.core.status.goodput import compute_goodput
from muster.core.status.hang import build_hang_record
from muster.core.status.network import build_network_status
from muster.core.status.progress import build_progress
from muster.core.status.rank_status import build_rank_status
from muster.core.status.restart_request import build_restart_request
from muster.core.status.restarts import build_restarts
from muster.core.status.sentences import describe_status
from muster.core.status.spares import build_spare_status
from muster.core.status.straggler_record import build_straggler_record
from muster.core.status.views import PENDING, STARTING, UNKNOWN, StatusInput
from muster_worker.contract.schema import CommandKind


def summarise(  # noqa: PLR0917 - the results of one reconcile
    job: Job, previous: Status, facts: JobFacts, outcome: Outcome, actions: Sequence[Action], now: float
) -> Status:
    """Return the job's status at `now` (Unix seconds), from `judge`'s `outcome` and `decide`'s `actions`.

    A job that has ended keeps its status.
    """
    if previous.final_condition is not None:
        return build_ended_status(previous, job.metadata.generation, now)
    if _is_more_complete(previous, facts, outcome, now):
        # Clients that change the spec wait for observedGeneration.
        return previous.model_copy(update={"observed_generation": job.metadata.generation})
    status_input = StatusInput(job, previous, facts, outcome, now, starts_ranks=_starts_ranks(actions))
    progress, phase = build_progress(status_input), _choose_phase(status_input)
    message = describe_status(status_input, progress)
    status = Status(
        observed_generation=job.metadata.generation,
        phase=phase,
        message=message,
        conditions=build_conditions(status_input, phase, message),
        nodes=_count_nodes(status_input),
        members=None if facts.desired_nodes is None else format_members(facts.nodes),
        spares=build_spare_status(status_input),
        elastic=build_elastic_status(status_input),
        network=_choose_network_status(status_input),
        ranks=build_rank_status(status_input),
        progress=progress,
        hang=build_hang_record(status_input),
        stragglers=build_straggler_record(status_input),
        placement=_build_placement(status_input),
        goodput=previous.goodput,
        restarts=build_restarts(status_input),
        restart_request=build_restart_request(status_input),
        source=_choose_source(status_input),
        attempt=_choose_attempt(status_input),
        start_time=_choose_start_time(status_input),
        completion_time=format_timestamp(now) if phase in ("Succeeded", "Failed") else None,
    )
    # Don't write the status only because time has passed.
    return status if status == previous else status.model_copy(update={"goodput": compute_goodput(status_input)})


def _count_nodes(status_input: StatusInput) -> NodeCounts:
    facts, now = status_input.facts, status_input.now
    desired = status_input.job.spec.nodes if facts.desired_nodes is None else facts.desired_nodes
    return NodeCounts(desired=desired, ready=sum(_is_ready_or_running(node, facts, now) for node in facts.nodes))


def _is_more_complete(previous: Status, facts: JobFacts, outcome: Outcome, now: float) -> bool:
    """Whether `previous` is more complete than the facts of an operator that has just restarted.

    The status would lose the running ranks, a failure or its root cause until the agents report.
    """
    if previous.start_time is None or previous.is_restarting:
        return False
    if not any(may_still_report(node, facts, now) for node in facts.nodes):
        return False
    return not outcome.is_decided or previous.is_failing


def _starts_ranks(actions: Sequence[Action]) -> bool:
    return any(isinstance(action, SendCommand) and action.command.kind == CommandKind.START for action in actions)


def _choose_attempt(status_input: StatusInput) -> int:
    outcome = status_input.outcome
    # The status has the next attempt before any agent starts it, so that a new leader continues with it.
    if outcome.is_restart_due:
        return outcome.attempt + 1
    return outcome.attempt if outcome.has_started or status_input.starts_ranks else status_input.previous.attempt


def _choose_source(status_input: StatusInput) -> SourceStatus | None:
    """Return the edited code of the attempt that runs or starts. The status has it before an agent receives it."""
    outcome = status_input.outcome
    return outcome.source if outcome.has_started or status_input.starts_ranks else status_input.previous.source


def _choose_phase(status_input: StatusInput) -> str:
    outcome = status_input.outcome
    if outcome.is_restart_due:
        return RESTARTING
    if outcome.is_decided and not outcome.is_idle:
        return "Stopping"
    if outcome.verdict is Verdict.SUSPENDED:
        return "Suspended"
    if outcome.is_decided:
        return "Succeeded" if outcome.verdict is Verdict.SUCCEEDED else "Failed"
    if status_input.previous.is_restarting and not (status_input.starts_ranks or outcome.has_started):
        return RESTARTING
    return _choose_phase_before_end(status_input)


def _choose_phase_before_end(status_input: StatusInput) -> str:
    if find_refusal_before_start(status_input) is not None:
        return REFUSED
    after_start = {view.state for view in status_input.views} - {PENDING, STARTING}
    # Ranks without reports keep the phase Running, because they may still run.
    if after_start - {UNKNOWN} or (after_start and status_input.previous.phase == "Running"):
        return "Running"
    if all(node.is_scheduled for node in status_input.facts.nodes):
        return "Starting"
    return "Queued" if _is_queued(status_input.job, status_input.facts) else "Pending"


def _is_queued(job: Job, facts: JobFacts) -> bool:
    """Whether the nodes wait for admission, by the job's queue or by another scheduling gate."""
    if any(node.is_scheduled for node in facts.nodes):
        return False
    problems = (node.process.problem for node in facts.nodes)
    return job.spec.queue is not None or any(
        problem is not None and problem.reason == SCHEDULING_GATED for problem in problems
    )


def _is_ready_or_running(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's agent is ready or runs ranks."""
    if node.process.state is not ProcessState.RUNNING or node.has_ended or facts.is_silent(node, now):
        return False
    return node.is_ready or node.has_started


def _choose_network_status(status_input: StatusInput) -> NetworkStatus | None:
    nodes, before = status_input.facts.nodes, status_input.previous.network
    # A lost agent's report about the network remains valid.
    if status_input.outcome.has_started and before is not None and any(node.current_agent is None for node in nodes):
        return before
    return build_network_status(nodes)


def _build_placement(status_input: StatusInput) -> Placement | None:
    """Return the record of the latest gang release, which a new leader needs; None for a suspended job."""
    outcome = status_input.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle:
        return None
    release = outcome.release
    if release is None:
        return status_input.previous.placement
    return Placement(releases=release.count, replacement=release.replacement, released_at=format_timestamp(release.at))


def _choose_start_time(status_input: StatusInput) -> str | None:
    """Return when the ranks started. The status has the time before the start command, so that no job starts twice."""
    outcome = status_input.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle:
        return None
    if status_input.previous.start_time is not None:
        return status_input.previous.start_time
    if not outcome.has_started:
        return format_timestamp(status_input.now) if status_input.starts_ranks else None
    # A user has cleared the status of a running job.
    starts = (view.facts.started_at for view in status_input.views if view.facts is not None)
    return format_timestamp(min((at for at in starts if at is not None), default=status_input.now))

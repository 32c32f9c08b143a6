"""Decide which actions a job needs now. All backends share this decision."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.core.actions import Action, CreateNode, KillNode, SendCommand
from muster.core.clean_up import clean_up, remove_pods_that_block_start, remove_surplus_pods
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import find_loss_time, find_unreachable_time
from muster.core.fence import may_old_pod_run
from muster.core.graceful_stop import add_stop_call_number, find_stop_call_number, is_graceful
from muster.core.membership.non_members import (
    find_change_time,
    find_nodes_to_create,
    remove_unusable_pods,
    remove_unwanted_pods,
)
from muster.core.membership.peers import select_peers
from muster.core.outcome import Outcome, Verdict
from muster.core.steps.step_counts import find_reason_display_time
from muster.core.world import is_mpi
from muster_worker.contract.schema import AgentPhase, Command, CommandKind
from muster_worker.contract.source import EditedSource

FAILURE_GRACE_SECONDS = 2.0
"""The time between SIGTERM and SIGKILL after a rank failed. It is short, because the other ranks can't continue."""

STOP_GRACE_SECONDS = 10.0
"""The time between SIGTERM and SIGKILL at a deadline or a stop request, if the node sets no grace period.

Healthy ranks may need this time to write a checkpoint.
"""

MIN_GRACE_SECONDS = 1.0
"""The minimum grace period: even a pod with a grace period of 0 gets a SIGTERM before SIGKILL."""

COMMAND_TIMEOUT_SECONDS = 10.0
"""muster kills an agent that has not obeyed a command for this long after the grace period."""


def decide(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Return the actions that the job needs at `now` (Unix seconds); none if it is in the desired state.

    `outcome` is the result of `judge` for these facts. `leader_term` orders leaders: agents refuse commands from an
    earlier leader. Once the facts show the actions applied, the same decision returns no new actions.
    """
    surplus = remove_surplus_pods(facts)
    deletions = clean_up(job, facts, outcome, now) if outcome.ends_job else ()
    may_start = not (outcome.is_decided or outcome.has_started)
    start_removals = remove_pods_that_block_start(job, facts, outcome) if may_start else None
    if outcome.ends_job:
        return (*surplus, *_end_nodes(job, facts, outcome, now, leader_term), *deletions)
    if start_removals is not None:
        return (*surplus, *start_removals)
    others = _manage_non_members(facts, outcome, now)
    if outcome.verdict is Verdict.RESTARTING:
        return (*surplus, *others, *_stop_attempt(job, facts, outcome, now, leader_term))
    missing = [node for node in facts.nodes if node.process.state is ProcessState.MISSING and not may_old_pod_run(node)]
    # The start command contains the addresses of all nodes, so create missing nodes first.
    if missing:
        # The members come first, because a quota may not allow all pods.
        return (*surplus, *(_create_node(node, outcome) for node in missing), *others)
    start = _send_start(job, facts, outcome, now, leader_term)
    return (*surplus, *others, *(start or _end_after_launcher(job, facts, outcome, now, leader_term)))


def _create_node(node: NodeFacts, outcome: Outcome) -> CreateNode:
    replacement = max(outcome.lowest_replacement, node.process.replacement + 1)
    return CreateNode(node.node, replacement, outcome.avoided_nodes)


def _manage_non_members(facts: JobFacts, outcome: Outcome, now: float) -> tuple[Action, ...]:
    creates = (_create_node(node, outcome) for node in find_nodes_to_create(facts, now))
    return (*remove_unwanted_pods(facts), *remove_unusable_pods(facts, now), *creates)


def find_requeue_time(job: Job, facts: JobFacts, outcome: Outcome, now: float) -> float | None:
    """Return the next time at which the decision or the status may change without a new event; None if never."""
    # The job was resumed during its suspension: complete the suspension first.
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle and not job.spec.suspend:
        return now
    # Once the status has the restart, decide on the next attempt at once.
    if outcome.is_restart_due:
        return now
    times = [at for node in facts.all_nodes for at in (facts.find_silence_time(node), find_loss_time(node, facts))]
    if outcome.is_decided:
        times.append(outcome.expires_at)
        times.extend(_find_kill_time(facts, outcome, node) for node in facts.all_nodes if not node.has_no_agent)
    else:
        if not outcome.has_started:
            times += [outcome.startup_deadline, outcome.release_at]
            times.append(None if outcome.last_restart is None else outcome.last_restart.not_before)
            times.append(None if outcome.release is None else outcome.release.until)
        times += [outcome.active_deadline, find_change_time(facts), outcome.resize_at, outcome.cause_deadline]
        times.extend(find_unreachable_time(node, facts) for node in facts.all_nodes)
        times.extend(
            find_reason_display_time(rank) for node in facts.nodes for rank in node.ranks if not rank.has_exited
        )
        times.extend(_find_kill_time(facts, outcome, node) for node in facts.nodes if not node.has_no_agent)
    return min((at for at in times if at is not None and at > now), default=None)


def _send_start(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Start the nodes that have not started, once all of them are ready.

    After a restart of the operator, some nodes may have started already.
    """
    if outcome.last_restart is not None and now < outcome.last_restart.not_before:
        return ()
    waiting = [node for node in facts.nodes if not node.has_started]
    if not waiting or not all(node.is_ready and not facts.is_silent(node, now) for node in waiting):
        return ()
    # Two nodes must never run the same ranks.
    if facts.conflicting_nodes:
        return ()
    peers = select_peers(facts.nodes)
    # The start command needs all addresses, and a restarted operator receives the nodes' reports one by one.
    if outcome.has_started and not peers:
        return ()
    source = None if outcome.source is None else EditedSource(outcome.source.sha256)
    command = Command(leader_term, job.metadata.uid, outcome.attempt, CommandKind.START, peers, source=source)
    return (SendCommand(tuple(node.node for node in waiting), command),)


def _end_after_launcher(
    job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int
) -> tuple[Action, ...]:
    """Stop the other nodes after mpirun has ended, because they wait for a command."""
    first = facts.nodes[0]
    # The agent on mpirun's own node cleans up by itself. Nodes that have ended receive an exit command later.
    if not is_mpi(job) or first.launcher is None or not first.has_ended:
        return ()
    waiting = [node for node in facts.nodes[1:] if node.current_agent is not None and not node.has_ended]
    command = _build_end_command(job, outcome, CommandKind.STOP, FAILURE_GRACE_SECONDS, leader_term)
    return _send_where_needed(facts, outcome, [(node, command) for node in waiting], now)


def _stop_attempt(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Stop the ranks of an attempt that is followed by another attempt, and keep the agents."""
    # Also send the command to agents that have started no ranks, so that they start none for this attempt.
    stop_call_number = find_stop_call_number(facts, outcome)
    commands = []
    for node in facts.nodes:
        if not node.has_ended:
            grace = choose_grace_seconds(node, facts, outcome)
            command = _build_end_command(job, outcome, CommandKind.STOP, grace, leader_term)
            commands.append((node, add_stop_call_number(command, node, stop_call_number)))
    return _send_where_needed(facts, outcome, commands, now)


def _end_nodes(job: Job, facts: JobFacts, outcome: Outcome, now: float, leader_term: int) -> tuple[Action, ...]:
    """Stop every node that still runs."""
    stop_call_number = find_stop_call_number(facts, outcome)
    commands = []
    for node in facts.all_nodes:
        grace = choose_grace_seconds(node, facts, outcome)
        command = _build_end_command(job, outcome, _choose_end_command_kind(node, grace), grace, leader_term)
        commands.append((node, add_stop_call_number(command, node, stop_call_number)))
    return _send_where_needed(facts, outcome, commands, now)


def _send_where_needed(
    facts: JobFacts, outcome: Outcome, commands: Sequence[tuple[NodeFacts, Command]], now: float
) -> tuple[Action, ...]:
    """Send the commands that nodes have not received yet, and kill the nodes that did not obey in time."""
    kills: list[Action] = []
    nodes_by_command: dict[Command, list[int]] = {}
    for node, command in commands:
        # Without a running process there is no agent to receive the command.
        if node.process.state is not ProcessState.RUNNING:
            continue
        kill_at = _find_kill_time(facts, outcome, node)
        # A new command restarts the agent's time limit.
        if not _has_received(node, command):
            nodes_by_command.setdefault(command, []).append(node.node)
        elif kill_at is not None and now >= kill_at:
            kills.append(KillNode(node.node, f"its agent did not end within {COMMAND_TIMEOUT_SECONDS:.0f} s"))
    return (*kills, *(SendCommand(tuple(nodes), command) for command, nodes in nodes_by_command.items()))


def _build_end_command(job: Job, outcome: Outcome, kind: str, grace: float, leader_term: int) -> Command:
    return Command(
        leader_term=leader_term,
        job_uid=job.metadata.uid,
        attempt=outcome.attempt,
        kind=kind,
        grace_seconds=grace if kind == CommandKind.STOP else 0.0,
    )


def _choose_end_command_kind(node: NodeFacts, grace: float) -> str:
    agent = node.current_agent
    # No rank runs on this node.
    if agent is None or node.has_ended or agent.report.phase == AgentPhase.READY:
        return CommandKind.EXIT
    # The user pressed Ctrl-C twice: kill at once.
    if grace <= 0:
        return CommandKind.KILL
    return CommandKind.STOP


def choose_grace_seconds(node: NodeFacts, facts: JobFacts, outcome: Outcome) -> float:
    """Return the time between SIGTERM and SIGKILL for the node's running ranks; 0 sends SIGKILL at once."""
    node_grace = node.process.grace_seconds
    healthy = STOP_GRACE_SECONDS if node_grace is None else max(MIN_GRACE_SECONDS, node_grace)
    grace = healthy if is_graceful(facts, outcome) else FAILURE_GRACE_SECONDS
    if facts.stop_request is None:
        return grace
    # After a failure, a stop request can only shorten the grace period.
    requested = facts.stop_request.grace_seconds
    return requested if outcome.verdict is Verdict.STOPPED else min(grace, requested)


def _has_received(node: NodeFacts, command: Command) -> bool:
    """Whether the current leader has sent the node this command or a later one. Agents refuse older leaders."""
    last = node.command
    if last is None or last.leader_term < command.leader_term:
        return False
    return (last.attempt, _get_command_order(last)) >= (command.attempt, _get_command_order(command))


def _get_command_order(command: Command) -> int:
    return CommandKind.ALL.index(command.kind)


def _find_kill_time(facts: JobFacts, outcome: Outcome, node: NodeFacts) -> float | None:
    """Return when to kill the node's process if it still runs; None if muster has sent no command to end."""
    command = node.command
    if command is None or not node.has_end_command:
        return None
    agent = node.current_agent
    # All ranks have ended, and the upload has no time limit.
    if agent is not None and agent.report.phase == AgentPhase.UPLOADING and command.kind != CommandKind.KILL:
        return None
    last_report_at = facts.created_at if agent is None else agent.last_report_at
    # Some backends don't record when they sent the command. Then use the time of the cause or of the last report.
    since = next(at for at in (node.command_sent_at, outcome.at, last_report_at) if at is not None)
    return since + command.grace_seconds + COMMAND_TIMEOUT_SECONDS

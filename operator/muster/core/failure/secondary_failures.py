"""Separate possible root causes from secondary failures.

Another end, or a command of muster, causes a secondary failure.
"""

import signal

from muster.api.spec.job import Job
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.ends import (
    AGENT_LOST,
    NODE_LOST,
    NODE_STOPPED,
    End,
    EndKind,
    build_agent_end,
    build_launcher_end,
    build_problem_end,
    list_failing_ranks,
    list_node_rank_ends,
    sort_ends,
)
from muster.core.failure.problems import EVICTED, NODE_SHUTDOWN, POD_DELETED, PREEMPTED
from muster.core.world import get_procs_per_node, is_mpi, uploads_to_s3
from muster_worker.contract.schema import CommandKind, EndReason

LAUNCHER_LOSS_SECONDS = 1.0
"""Ranks die at most this long after their launcher: twice the delay of a report on a busy node."""

_DELETION_REASONS = frozenset((NODE_LOST, POD_DELETED, PREEMPTED, EVICTED, NODE_SHUTDOWN))
"""Reasons of deletions by something other than muster."""

_STOP_SIGNAL_NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_STOP_SIGNALS = frozenset(_STOP_SIGNAL_NUMBERS)
_STOP_EXIT_CODES = frozenset(128 + number for number in _STOP_SIGNAL_NUMBERS)


def find_possible_causes(job: Job, facts: JobFacts, *, has_started: bool) -> tuple[End, ...]:
    """Return the failures that neither muster nor another end explains, ordered by time.

    `has_started` is set once the nodes received the start command.
    """
    ends = list(find_node_failures(job, facts, has_started=has_started))
    for node in facts.nodes:
        # A problem of the agent before any rank ended explains the node's failed processes.
        if build_problem_end(facts, node) is None or list_node_rank_ends(node):
            ends.extend(_find_failed_processes(node))
    return sort_ends(ends)


def find_node_failures(job: Job, facts: JobFacts, *, has_started: bool) -> tuple[End, ...]:
    """Return the failures of whole nodes: an agent's problem, or a lost or stopped agent."""
    ends: list[End] = []
    for node in facts.nodes:
        problem = build_problem_end(facts, node)
        lost = _find_lost_agent(job, facts, node) if has_started else _find_agent_lost_before_start(job, facts, node)
        ends.extend(end for end in (problem, lost if problem is None else None) if end is not None)
    return sort_ends(ends)


def is_secondary(end: End) -> bool:
    """Whether an end looks like a secondary failure: the process lost a peer or received SIGTERM."""
    # The rank's own error came before the signal of muster, mpirun or torchrun.
    if end.has_own_error:
        return False
    # A lost connection causes neither SIGKILL nor a segmentation fault.
    if end.signal is not None and end.signal not in _STOP_SIGNALS and end.signal != signal.SIGABRT:
        return False
    # torchrun sends SIGTERM to the other ranks of the node, and scripts may turn that into an exit code.
    if end.signal in _STOP_SIGNALS or end.exit_code in _STOP_EXIT_CODES:
        return end.kind is not EndKind.AGENT
    # The wrapper reports why the command could not start.
    if end.reason is not None:
        return False
    return end.mentions_lost_peer


def _find_failed_processes(node: NodeFacts) -> list[End]:
    """Return the node's failed ranks, and its launcher if the launcher is the cause."""
    ranks = list_node_rank_ends(node)
    failed = [end for end in ranks if end.has_own_error or not (end.is_success or end.stopped)]
    failed += [end for end in list_failing_ranks(node) if end.has_own_error]
    launcher = build_launcher_end(node)
    # The agent kills a launcher that outlives its ranks after a stop.
    was_stopped = node.launcher is not None and node.launcher.end.stopped
    if launcher is not None and not launcher.is_success and not was_stopped:
        # The ranks die with a killed launcher.
        if launcher.signal is not None and launcher.signal not in _STOP_SIGNALS:
            independent = [end for end in failed if not _died_with_launcher(end, launcher)]
            return [*independent, launcher] if len(independent) < len(failed) or not ranks else failed
        # Otherwise a launcher fails because of its ranks, so it is a cause only if no rank failed or was stopped.
        if not failed and not any(end.stopped for end in ranks):
            failed.append(launcher)
    return failed


def _died_with_launcher(end: End, launcher: End) -> bool:
    died = end.reason == EndReason.WRAPPER_LOST or end.signal == signal.SIGKILL
    return died and end.at >= launcher.at - LAUNCHER_LOSS_SECONDS


def _find_agent_lost_before_start(job: Job, facts: JobFacts, node: NodeFacts) -> End | None:
    process = node.process
    # A process that has not ended may still report.
    if process.state is not ProcessState.EXITED:
        return None
    # The pod is being deleted and will be replaced before the start.
    if process.is_terminating:
        return None
    external = _find_external_stop(job, facts, node)
    if external is not None or _has_exit_command(node):
        return external
    at = process.ended_at if process.ended_at is not None else _get_last_report_time(facts, node)
    return build_agent_end(node, at, AGENT_LOST)


def _find_lost_agent(job: Job, facts: JobFacts, node: NodeFacts) -> End | None:
    external = _find_external_stop(job, facts, node)
    if external is not None or node.has_ended:
        return external
    process = node.process
    if _has_exit_command(node):
        return None
    if process.state is ProcessState.EXITED:
        # All ranks succeeded, and only the last report is missing.
        successes = sum(end.is_success for end in list_node_rank_ends(node))
        if not uploads_to_s3(job) and successes == get_procs_per_node(job):
            return None
        return _build_lost_agent_end(facts, node, AGENT_LOST)
    # Something other than muster deleted the process after the start.
    if process.state is ProcessState.MISSING:
        return _build_lost_agent_end(facts, node, NODE_LOST)
    return None


def _build_lost_agent_end(facts: JobFacts, node: NodeFacts, reason: str) -> End:
    """Return the end of an agent whose last report is missing. It ended after its previous report."""
    last_report_at, ended_at = _get_last_report_time(facts, node), node.process.ended_at
    if ended_at is None:
        return build_agent_end(node, last_report_at, reason)
    was_unobserved = node.process.lost_at is not None or node.process.state is ProcessState.MISSING
    return build_agent_end(node, ended_at, reason, since=last_report_at if was_unobserved else None)


def _find_external_stop(job: Job, facts: JobFacts, node: NodeFacts) -> End | None:
    """Return the end of an agent that something other than muster stops; None otherwise."""
    stopped_at = find_external_stop_time(node)
    if stopped_at is None:
        return None
    # muster's own command came first.
    if node.has_end_command and node.command_sent_at is not None and node.command_sent_at <= stopped_at:
        return None
    # All ranks had ended before the stop.
    had_ended = node.has_ended and node.ranks and not any(each.report.stopped for each in node.ranks)
    if had_ended and not _do_others_need(job, facts, node):
        return None
    return build_agent_end(node, stopped_at, NODE_STOPPED)


def _do_others_need(job: Job, facts: JobFacts, node: NodeFacts) -> bool:
    """Whether other nodes need this node, whose ranks have ended: mpirun needs a daemon, torchrun waits for its peers.

    They don't if all have succeeded.
    """
    was_launcher_stopped = node.launcher is not None and node.launcher.end.stopped
    if not is_mpi(job) and not was_launcher_stopped:
        return False
    return not all(rank.has_succeeded for each in facts.nodes for rank in each.ranks)


def find_external_stop_time(node: NodeFacts) -> float | None:
    """Return when something other than muster first tried to stop the agent.

    This is the first of three times: of the announced disruption, of the pod's deletion, and of the SIGTERM.
    """
    process, agent = node.process, node.current_agent
    times = [None if agent is None else agent.terminated_at]
    if process.problem is not None and process.problem.reason in _DELETION_REASONS and process.lost_at is None:
        times += [process.disruption_announced_at, process.deletion_requested_at]
    return min((at for at in times if at is not None), default=None)


def _has_exit_command(node: NodeFacts) -> bool:
    return node.command is not None and node.command.kind == CommandKind.EXIT


def _get_last_report_time(facts: JobFacts, node: NodeFacts) -> float:
    agent = node.current_agent
    return facts.created_at if agent is None else agent.last_report_at

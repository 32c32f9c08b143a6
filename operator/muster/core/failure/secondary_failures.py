"""Which ends are secondary failures: of another end, or of what muster told a node to do. Any other can be a cause."""

import signal

from muster.api.spec.job import Job
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure import rank_output
from muster.core.failure.ends import (
    AGENT_LOST,
    NODE_LOST,
    NODE_STOPPED,
    End,
    Subject,
    agent_end,
    in_order,
    launcher_end,
    problem_end,
    rank_ends_of,
)
from muster.core.world import procs_per_node, uploads_to_s3
from muster_worker.contract.schema import CommandKind, EndReason

LAUNCHER_LOSS_SECONDS = 1.0
"""Ranks that die with their launcher do so at once; twice what a loaded machine needs to tell."""

_LEAVE_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ASKED_TO_LEAVE = frozenset(_LEAVE_SIGNALS)
_ASKED_TO_LEAVE_CODES = frozenset(128 + number for number in _LEAVE_SIGNALS)


def possible_causes(job: Job, facts: JobFacts, *, started: bool) -> tuple[End, ...]:
    """The ends that can be a failure's cause, first one first: neither good, nor muster's doing, nor explained.

    `started` says that the gang was told to start.
    """
    ends = list(outside_ends(job, facts, started=started))
    for node in facts.nodes:
        # Where ranks have ended, the problem came after them.
        if problem_end(facts, node) is None or rank_ends_of(node):
            ends.extend(_failed_processes(node))
    return in_order(ends)


def outside_ends(job: Job, facts: JobFacts, *, started: bool) -> tuple[End, ...]:
    """The causes that are no process of the job: a node that can't work, an agent that is gone or was told to leave."""
    ends: list[End] = []
    for node in facts.nodes:
        problem = problem_end(facts, node)
        lost = _lost_agent(job, facts, node) if started else _lost_before_start(facts, node)
        ends.extend(end for end in (problem, lost if problem is None else None) if end is not None)
    return in_order(ends)


def is_secondary(end: End) -> bool:
    """Whether an end looks like the secondary failure of another one: a peer was lost, or it got SIGTERM."""
    # A lost connection causes no SIGKILL and no segmentation fault, whatever was logged before.
    if end.signal is not None and end.signal not in _ASKED_TO_LEAVE and end.signal != signal.SIGABRT:
        return False
    # torchrun sends SIGTERM to a failed rank's siblings, and a script may turn that into an exit code.
    if end.signal in _ASKED_TO_LEAVE or end.exit_code in _ASKED_TO_LEAVE_CODES:
        return end.subject is not Subject.AGENT
    # The wrapper knows why the command did not start at all.
    if end.reason is not None:
        return False
    return rank_output.names_a_peer(end.lines)


def _failed_processes(node: NodeFacts) -> list[End]:
    """Ranks of the node that failed, or its launcher when that was the cause."""
    ranks = rank_ends_of(node)
    failed = [end for end in ranks if not end.is_good and not end.stopped]
    launcher = launcher_end(node)
    if launcher is not None and not launcher.is_good:
        # A launcher that is killed takes its ranks along.
        if launcher.signal is not None and launcher.signal not in _ASKED_TO_LEAVE:
            own = [end for end in failed if not _went_with(end, launcher)]
            return [*own, launcher] if len(own) < len(failed) or not ranks else failed
        # A launcher fails because a rank did, or ends because its ranks were stopped.
        if not failed and not any(end.stopped for end in ranks):
            failed.append(launcher)
    return failed


def _went_with(end: End, launcher: End) -> bool:
    died = end.reason == EndReason.WRAPPER_LOST or end.signal == signal.SIGKILL
    return died and end.at >= launcher.at - LAUNCHER_LOSS_SECONDS


def _lost_before_start(facts: JobFacts, node: NodeFacts) -> End | None:
    process = node.process
    # A process that has not ended may still report.
    if process.state is not ProcessState.EXITED:
        return None
    # The pod is being deleted and will be replaced before the start: nothing is lost.
    if process.is_leaving:
        return None
    outside = _stopped_from_outside(node)
    if outside is not None or _is_told_to_leave(node):
        return outside
    at = process.ended_at if process.ended_at is not None else _last_heard_at(facts, node)
    return agent_end(node, at, AGENT_LOST)


def _lost_agent(job: Job, facts: JobFacts, node: NodeFacts) -> End | None:
    outside = _stopped_from_outside(node)
    if outside is not None or node.has_ended:
        return outside
    process = node.process
    if _is_told_to_leave(node):
        return None
    if process.state is ProcessState.EXITED:
        # The work was done; what the agent had still to do was to say so, and to keep what is to be kept.
        if not uploads_to_s3(job) and sum(end.is_good for end in rank_ends_of(node)) == procs_per_node(job):
            return None
        return _agent_gone(facts, node, AGENT_LOST)
    # After the start a process is missing only if it was removed.
    if process.state is ProcessState.MISSING:
        return _agent_gone(facts, node, NODE_LOST)
    return None


def _agent_gone(facts: JobFacts, node: NodeFacts, reason: str) -> End:
    """The end of an agent that went without a word: after its last one, and not after it was seen to be gone."""
    heard_at, ended_at = _last_heard_at(facts, node), node.process.ended_at
    if ended_at is None:
        return agent_end(node, heard_at, reason)
    is_unseen = node.process.lost_at is not None or node.process.state is ProcessState.MISSING
    return agent_end(node, ended_at, reason, since=heard_at if is_unseen else None)


def _stopped_from_outside(node: NodeFacts) -> End | None:
    """The agent stops ranks that muster did not tell it to stop: somebody sent it SIGTERM."""
    agent = node.current_agent
    if agent is None or agent.terminated_at is None:
        return None
    # Muster was first. Where it isn't known when it told the agent, an earlier cause still comes first.
    if node.is_told_to_end and node.commanded_at is not None and node.commanded_at <= agent.terminated_at:
        return None
    # Its ranks had ended by themselves.
    if node.has_ended and agent.ranks and not any(rank.report.stopped for rank in agent.ranks):
        return None
    return agent_end(node, agent.terminated_at, NODE_STOPPED)


def _is_told_to_leave(node: NodeFacts) -> bool:
    return node.command is not None and node.command.kind == CommandKind.EXIT


def _last_heard_at(facts: JobFacts, node: NodeFacts) -> float:
    agent = node.current_agent
    return facts.created_at if agent is None else agent.heard_at

"""Reasons of problems that affect decisions, and the problems of nodes that don't report: unreachable, silent or lost.

muster can't distinguish a failed Kubernetes node from a network partition. It requires two independent signs before it
counts a node as lost: the agent stops reporting, and the cluster marks the Kubernetes node as unreachable or can't
delete the pod. A silent agent alone is not lost, because muster itself may be unreachable.
"""

from dataclasses import replace

from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp
from muster.core.facts import (
    MAX_MISSED_HEARTBEATS,
    JobFacts,
    NodeFacts,
    ProcessFacts,
    ProcessState,
    RankFacts,
)
from muster.core.failure.ends import NODE_LOST
from muster.core.fence import compute_fence_timeout
from muster.core.problem import Problem

AGENT_UNREACHABLE = "AgentUnreachable"
NODE_SILENT = "NodeSilent"
OOM_KILLED = "OOMKilled"
CONTAINER_KILLED = "ContainerKilled"
POD_DELETED = "PodDeleted"
PREEMPTED = "Preempted"
EVICTED = "Evicted"
NODE_SHUTDOWN = "NodeShutdown"
REFUSED_BY_KUBELET = "RefusedByKubelet"
UNSCHEDULABLE = "Unschedulable"
SCHEDULING_GATED = "SchedulingGated"
QUOTA_EXCEEDED = "QuotaExceeded"
FETCHING_FILES = "FetchingFiles"

UNREACHABLE_SECONDS = 30.0
"""How long an agent may run before its first report. Python may take seconds to start from a slow disk."""

LOST_SECONDS = 60.0
"""How long to wait for a silent node after the cluster has marked its Kubernetes node as unreachable.

A network switch can restart in this time, and the ranks continue. Kubernetes takes 40 to 50 s to mark a node. So a
network partition of less than 100 s never ends an attempt. A longer partition ends it after two minutes.
"""

_UNREACHABLE = Problem(
    AGENT_UNREACHABLE,
    f"its agent has run for {UNREACHABLE_SECONDS:.0f} s without a report; look for a NetworkPolicy that keeps the "
    "job's pods from muster's collector",
)


def find_unreachable_time(node: NodeFacts, facts: JobFacts) -> float | None:
    """Return when the agent counts as unreachable if no report arrives; None if it has reported or doesn't run."""
    process = node.process
    if process.state is not ProcessState.RUNNING or process.started_at is None or node.current_agent is not None:
        return None
    # A restarted operator has received no report yet.
    return max(process.started_at, facts.collector_started_at) + UNREACHABLE_SECONDS


def may_still_report(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the agent has not reported yet but may still report in time."""
    at = find_unreachable_time(node, facts)
    return at is not None and now < at


def find_loss_time(node: NodeFacts, facts: JobFacts) -> float | None:
    """Return when the node counts as lost if no report arrives; None if the cluster shows no sign of a loss."""
    process = node.process
    if process.lost_at is not None:
        return process.lost_at
    if process.state is ProcessState.MISSING:
        return None
    suspected_at = [at for at in (process.unreachable_since, process.deletion_deadline) if at is not None]
    if not suspected_at:
        return None
    # The process has ended, and only its pod's deletion is overdue.
    if process.state is ProcessState.EXITED:
        return None if process.deletion_deadline is None else process.deletion_deadline + LOST_SECONDS
    silence_seconds = MAX_MISSED_HEARTBEATS * facts.get_heartbeat_seconds(node.current_agent)
    timeout = max(LOST_SECONDS, silence_seconds, compute_fence_timeout(node, facts))
    return max(min(suspected_at) + LOST_SECONDS, _get_last_report_time(node, facts) + timeout)


def mark_if_lost(node: NodeFacts, facts: JobFacts, previous: Status, now: float, *, has_started: bool) -> NodeFacts:
    """Return the node, marked as ended if its Kubernetes node is lost at `now` (Unix seconds).

    `has_started` is set once the nodes received the start command. Before that, and during a suspension, the node
    becomes MISSING, so that it can be replaced.
    """
    at = find_loss_time(node, facts)
    if at is None or now < at:
        return node
    is_terminating = node.process.is_terminating or node.process.state is ProcessState.MISSING
    process = replace(node.process, lost_at=at, is_terminating=is_terminating)
    # A failing job replaces no node.
    if previous.is_suspending or not (has_started or previous.is_failing):
        return replace(node, process=replace(process, state=ProcessState.MISSING, problem=None))
    if process.state is ProcessState.EXITED:
        return replace(node, process=process)
    lost = replace(process, state=ProcessState.EXITED, ended_at=at)
    # All ranks ended and reported before the loss.
    if node.has_ended:
        return replace(node, process=lost)
    problem = Problem(NODE_LOST, _describe_loss(process, at))
    return replace(node, process=replace(lost, problem=problem))


def add_silence_problem(node: NodeFacts, facts: JobFacts, now: float) -> NodeFacts:
    """Return the node with the problem that follows from its missing reports at `now` (Unix seconds), if any."""
    at = find_unreachable_time(node, facts)
    # A problem that the backend observed is more precise.
    if node.process.problem is not None:
        return _add_largest_rank(node)
    if at is not None and now >= at:
        return _set_problem(node, _UNREACHABLE)
    silence_problem = _find_silence_problem(node, facts, now)
    return node if silence_problem is None else _set_problem(node, silence_problem)


def _find_silence_problem(node: NodeFacts, facts: JobFacts, now: float) -> Problem | None:
    """Return the problem of a pod whose agent has stopped reporting; None if it reports."""
    process, agent = node.process, node.agent
    # A local agent is silent only if this machine is busy.
    if process.name is None or agent is None or not facts.is_silent(node, now):
        return None
    since = f"the agent in pod {process.name} has not reported since {format_timestamp(agent.last_report_at)}"
    kube_node = (
        "its Kubernetes node"
        if process.kube_node is None
        else f"{process.kube_node} (`kubectl get node {process.kube_node}`)"
    )
    return Problem(NODE_SILENT, f"{since}; {kube_node} may be down or cut off")


def _add_largest_rank(node: NodeFacts) -> NodeFacts:
    """Add the rank with the most memory in the last report, because the kernel may kill the whole container."""
    problem, agent = node.process.problem, node.current_agent
    if problem is None or problem.reason not in (OOM_KILLED, CONTAINER_KILLED) or agent is None:
        return node
    largest = max(agent.ranks, key=_get_memory_bytes, default=None)
    if largest is None or not _get_memory_bytes(largest):
        return node
    mebibytes = _get_memory_bytes(largest) / 2**20
    text = f"{problem.message}; rank {largest.report.rank} used the most memory: {mebibytes:,.0f} MiB"
    return _set_problem(node, Problem(problem.reason, text))


def _get_memory_bytes(rank: RankFacts) -> int:
    return rank.report.rss_bytes or 0


def _set_problem(node: NodeFacts, problem: Problem) -> NodeFacts:
    return replace(node, process=replace(node.process, problem=problem))


def _get_last_report_time(node: NodeFacts, facts: JobFacts) -> float:
    agent = node.current_agent
    # A restarted operator has received no report yet.
    return facts.collector_started_at if agent is None else max(agent.last_report_at, facts.collector_started_at)


def _describe_loss(process: ProcessFacts, at: float) -> str:
    kube_node = process.kube_node or "its Kubernetes node"
    silence = f"neither the cluster nor muster had a report of pod {process.name} for at least {LOST_SECONDS:.0f} s"
    return f"{kube_node} is lost: {silence} (at {format_timestamp(at)})"

"""Manage the pods of nodes that wait for another attempt: create the pods that the job needs, and delete the others."""

from collections.abc import Iterator

from muster.core.actions import KillNode
from muster.core.facts import JobFacts, NodeFacts, ProcessState

BACKOFF_SECONDS = 30.0
"""The wait before muster replaces a pod that has ended or whose agent has a problem: the new pod may fail, too."""

_SURPLUS = "the job has fewer nodes now"


def find_nodes_to_create(facts: JobFacts, now: float) -> tuple[NodeFacts, ...]:
    """Return the nodes outside the attempt that need a new pod at `now` (Unix seconds)."""
    return tuple(node for node in _find_wanted_nodes(facts) if _needs_pod(node) and _find_creation_time(node) <= now)


def find_change_time(facts: JobFacts) -> float | None:
    """Return when to create or delete the next pod of a node outside the attempt; None if there is nothing to do."""
    creates = (_find_creation_time(node) for node in _find_wanted_nodes(facts) if _needs_pod(node))
    removals = (at for node in _find_wanted_nodes(facts) if (at := _find_removal_time(node)) is not None)
    return min((*creates, *removals), default=None)


def remove_unwanted_pods(facts: JobFacts) -> tuple[KillNode, ...]:
    """Delete the pods of nodes that the job no longer has, and the pods that run ranks of other nodes."""
    wanted_nodes = {node.node for node in (*facts.nodes, *_find_wanted_nodes(facts))}
    return tuple(
        KillNode(node.node, "it runs ranks of another node" if node.node in facts.conflicting_nodes else _SURPLUS)
        for node in facts.all_nodes
        if (node.node not in wanted_nodes or node.node in facts.conflicting_nodes)
        and node.process.state in (ProcessState.WAITING, ProcessState.RUNNING)
        and not node.process.is_terminating
    )


def remove_unusable_pods(facts: JobFacts, now: float) -> tuple[KillNode, ...]:
    """Delete the pods that can't run ranks, so that muster replaces them. `now` is in Unix seconds."""
    return tuple(
        KillNode(node.node, "it can't run ranks")
        for node in _find_wanted_nodes(facts)
        if (at := _find_removal_time(node)) is not None and at <= now
    )


def _find_wanted_nodes(facts: JobFacts) -> Iterator[NodeFacts]:
    """Return the nodes outside the attempt that need a pod. The job prefers nodes with low numbers."""
    desired = len(facts.nodes) if facts.desired_nodes is None else facts.desired_nodes
    count = max(0, desired + facts.spares - len(facts.nodes))
    return iter(sorted(facts.non_members, key=lambda node: node.node)[:count])


def _needs_pod(node: NodeFacts) -> bool:
    return node.process.state in (ProcessState.MISSING, ProcessState.EXITED)


def _find_removal_time(node: NodeFacts) -> float | None:
    """Return when to delete a pod that can't run ranks; None to keep the pod."""
    process, agent = node.process, node.current_agent
    if process.state is not ProcessState.RUNNING or process.is_terminating:
        return None
    if process.disruption_announced_at is not None:
        return process.disruption_announced_at
    if agent is None:
        return None
    return None if agent.report.problem is None else (process.started_at or 0.0) + BACKOFF_SECONDS


def _find_creation_time(node: NodeFacts) -> float:
    ended_at = node.process.ended_at
    return 0.0 if node.process.state is ProcessState.MISSING or ended_at is None else ended_at + BACKOFF_SECONDS

"""Choose the spares that replace nodes which can't run the next attempt. The other nodes keep their node ranks.

A job with spares has more nodes than members, and all its pods are equal. Nodes that are not members of the attempt are
spares, whose agents wait. So a node that a spare has replaced becomes a spare itself.
"""

from collections.abc import Sequence

from muster.api.status.status import Status
from muster.core.facts import NodeFacts, ProcessState
from muster.core.failure.problems import FETCHING_FILES
from muster.core.fence import are_all_cut_off
from muster_worker.contract.schema import AgentPhase

_READY, _STARTING, _UNUSABLE = range(3)
"""Ratings of how soon a node can run ranks. Lower numbers are better."""


def replace_unusable_members(previous: Status, members: Sequence[int], nodes: Sequence[NodeFacts]) -> tuple[int, ...]:
    """Return the members of the next attempt: `members`, with spares instead of nodes that can't run soon.

    `nodes` are all nodes of the job, by index. Call this only while no attempt runs.
    """
    if previous.attempt > 0 and _may_ranks_still_run([nodes[member] for member in members]):
        return tuple(members)
    spares = sorted(
        (node for node in nodes if node.node not in members), key=lambda node: (_rate_spare(node), node.node)
    )
    chosen = list(members)
    # The worst nodes come first, because there may be too few spares.
    by_need = sorted(range(len(chosen)), key=lambda node_rank: -_rate_member(previous, nodes[chosen[node_rank]]))
    for node_rank, spare in zip(by_need, spares, strict=False):
        if _rate_spare(spare) < _rate_member(previous, nodes[chosen[node_rank]]):
            chosen[node_rank] = spare.node
    return tuple(chosen)


def is_spare_ready(node: NodeFacts) -> bool:
    """Whether a spare can replace a node at once."""
    return _rate_spare(node) == _READY


def _may_ranks_still_run(members: Sequence[NodeFacts]) -> bool:
    """Whether ranks of the last attempt may still run, so that no spare may replace their nodes.

    A new leader has no reports of the agents yet, and doesn't know which Kubernetes nodes are lost.
    """
    return are_all_cut_off(members) or any(_may_node_still_run_ranks(node) for node in members)


def _may_node_still_run_ranks(node: NodeFacts) -> bool:
    agent = node.current_agent
    if node.process.state is not ProcessState.RUNNING:
        return False
    return agent is None or agent.report.phase not in (AgentPhase.READY, AgentPhase.ENDED)


def _rate_spare(node: NodeFacts) -> int:
    if not _is_usable(node):
        return _UNUSABLE
    return _READY if node.is_ready else _STARTING


def _rate_member(previous: Status, node: NodeFacts) -> int:
    if not _is_usable(node):
        return _UNUSABLE
    # Before the first start all pods are new, and the members should be the first nodes. In a restart, a
    # node without an agent has a new pod, which may pull its image for minutes.
    return _READY if not previous.is_restarting or node.current_agent is not None else _STARTING


def _is_usable(node: NodeFacts) -> bool:
    """Whether the node is ready or may become ready: its pod shows no problem that prevents this."""
    process, agent = node.process, node.current_agent
    if process.state not in (ProcessState.WAITING, ProcessState.RUNNING) or not node.is_scheduled:
        return False
    if process.is_terminating or (agent is not None and agent.report.problem is not None):
        return False
    return process.problem is None or process.problem.reason == FETCHING_FILES

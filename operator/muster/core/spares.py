"""Choose which spares take the place of nodes that can't run the next attempt. The other nodes keep their node ranks.

A job with spares has more nodes than members, all with equal pods. The nodes that are not members of the attempt are
its spares: their agents wait. So a node that is replaced by a spare later becomes a spare itself.
"""

from collections.abc import Sequence

from muster.api.status.status import Status
from muster.core.facts import NodeFacts, ProcessState
from muster.core.failure.problems import FETCHING_FILES
from muster.core.fence import are_all_cut_off
from muster_worker.contract.schema import AgentPhase

_READY, _STARTING, _UNUSABLE = range(3)
"""How soon a node can run ranks. A lower number is better."""


def replace_unusable_members(previous: Status, members: Sequence[int], nodes: Sequence[NodeFacts]) -> tuple[int, ...]:
    """Return the members of the next attempt: `members`, with spares in the place of those that can't run it soon.

    `nodes` are all nodes of the job, by number. No attempt runs.
    """
    if previous.attempt > 0 and _may_run_ranks([nodes[member] for member in members]):
        return tuple(members)
    spares = sorted(
        (node for node in nodes if node.node not in members), key=lambda node: (_rate_spare(node), node.node)
    )
    chosen = list(members)
    # The nodes that need a spare most come first: there may be fewer spares.
    by_need = sorted(range(len(chosen)), key=lambda rank: -_rate_member(previous, nodes[chosen[rank]]))
    for rank, spare in zip(by_need, spares, strict=False):
        if _rate_spare(spare) < _rate_member(previous, nodes[chosen[rank]]):
            chosen[rank] = spare.node
    return tuple(chosen)


def is_spare_ready(node: NodeFacts) -> bool:
    """Whether a node that is no member can take a node's place at once."""
    return _rate_spare(node) == _READY


def _may_run_ranks(members: Sequence[NodeFacts]) -> bool:
    """Whether ranks of the last attempt may run, so that no other node may take their place.

    A new leader has not heard of the agents yet, nor does it know which machines are lost.
    """
    return are_all_cut_off(members) or any(_may_node_run_ranks(node) for node in members)


def _may_node_run_ranks(node: NodeFacts) -> bool:
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
    # All pods of a first start take their time, and its members should be the first nodes. In a restart only a new pod
    # has no agent: it may wait for its image for minutes.
    return _READY if not previous.is_restarting or node.current_agent is not None else _STARTING


def _is_usable(node: NodeFacts) -> bool:
    """Whether the node is ready or will be, as far as its pod shows."""
    process, agent = node.process, node.current_agent
    if process.state not in (ProcessState.WAITING, ProcessState.RUNNING) or not node.is_scheduled:
        return False
    if process.is_terminating or (agent is not None and agent.report.problem is not None):
        return False
    return process.problem is None or process.problem.reason == FETCHING_FILES

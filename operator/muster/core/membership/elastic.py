"""Choose the nodes that run the next attempt of an elastic job: its members.

The members of the last attempt stay. A restart waits `resizeAfterSeconds` for members that are not ready, and then
starts without them. muster stops a running attempt when `spec.nodes` has changed, or when lost nodes are ready again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.plurals import pluralize
from muster.api.spec.elastic import Elastic
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.core.disruption import will_end
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import FETCHING_FILES
from muster.core.fence import are_all_cut_off
from muster.core.restarts import RESIZED
from muster_worker.contract.schema import AgentPhase

MAX_GROW_SECONDS = 4 * 3600.0
"""The longest wait before a restart with more nodes, unless `growAfterSeconds` is longer.

Each such restart within this time doubles the wait.
"""

MIN_DOUBLED_GROW_SECONDS = 30.0
"""If `growAfterSeconds` is shorter than this, double this time instead, because 0 seconds doubled are still 0."""

_MAX_DOUBLINGS = 10


@dataclass(frozen=True)
class ResizeInput:
    """The input for choosing members.

    `count` is spec.nodes, `facts.nodes` are all nodes by number, `now` is Unix seconds.
    """

    elastic: Elastic
    count: int
    facts: JobFacts
    now: float


def choose_elastic_members(previous: Status, last: Sequence[int] | None, resize_input: ResizeInput) -> tuple[int, ...]:
    """Return the members of the next attempt. Call this only while no attempt runs.

    `last` are the members of the last attempt, or of the previous choice.
    """
    nodes = resize_input.facts.nodes
    if last is None or previous.attempt == 0:
        return tuple(range(resize_input.count))
    # Keep all members while one of them may still run ranks.
    if _may_ranks_still_run(previous, [nodes[member] for member in last]):
        return tuple(last)
    ready_nodes = {node.node for node in nodes if _is_ready(node, resize_input)}
    # A restart prefers ready nodes, so that the surviving members can start soon.
    candidates = ready_nodes if previous.is_restarting else range(len(nodes))
    members = _limit_members(_add_members(last, candidates, resize_input), ready_nodes, resize_input.count)
    shrinks_at = find_shrink_time(previous, resize_input.elastic)
    if shrinks_at is None or resize_input.now < shrinks_at or len(ready_nodes) < resize_input.elastic.min_nodes:
        return members
    survivors = [member for member in last if member in ready_nodes]
    return _limit_members(_add_members(survivors, ready_nodes, resize_input), ready_nodes, resize_input.count)


def find_shrink_time(previous: Status, elastic: Elastic) -> float | None:
    """Return when the restart stops waiting for nodes that are not ready (Unix seconds); None without a restart."""
    restarts, last = previous.restarts, previous.last_restart
    if not previous.is_restarting or restarts is None or last is None:
        return None
    return parse_untrusted_timestamp(restarts.not_before or last.at) + elastic.resize_after_seconds


def explain_resize(job: Job, previous: Status, facts: JobFacts, now: float) -> str | None:
    """Return why muster has to restart the running attempt with another number of nodes; None if it need not.

    `job.spec.nodes` is the number of nodes of the running attempt.
    """
    elastic, desired_nodes, count = job.spec.elastic, facts.desired_nodes, len(facts.nodes)
    if elastic is None or desired_nodes is None or desired_nodes == count or not previous.was_started:
        return None
    if desired_nodes < count:
        return f"spec.nodes is {desired_nodes} now instead of {count}"
    added = _find_joining_nodes(facts, desired_nodes - count, now)
    at = find_growth_time(elastic, previous, desired_nodes)
    if not added or now < at:
        return None
    names = added[0].name if len(added) == 1 else f"{added[0].name} and {len(added) - 1} more"
    return f"{names} can join {pluralize(count, 'node')}"


def find_resize_time(job: Job, previous: Status, facts: JobFacts) -> float | None:
    """Return when the number of nodes may change without an event (Unix seconds); None if it needs an event."""
    elastic, desired_nodes = job.spec.elastic, facts.desired_nodes
    if elastic is None or desired_nodes is None:
        return None
    if not previous.was_started:
        return find_shrink_time(previous, elastic)
    return find_growth_time(elastic, previous, desired_nodes) if len(facts.nodes) < desired_nodes else None


def find_growth_time(elastic: Elastic, previous: Status, desired_nodes: int) -> float:
    """Return when ready nodes may join the running attempt, which has fewer than `desired_nodes` nodes (Unix seconds).

    The wait limits how often an unreliable node stops the ranks, because each growth is a restart.
    """
    record, last = previous.elastic, previous.last_restart
    if last is None or (record is not None and record.followed_nodes < desired_nodes):
        return 0.0
    since = parse_untrusted_timestamp(last.at) + (last.seconds_lost or 0.0)
    history = () if previous.restarts is None else previous.restarts.history
    growths = sum(
        entry.reason == RESIZED and parse_untrusted_timestamp(entry.at) > since - MAX_GROW_SECONDS for entry in history
    )
    first = float(elastic.grow_after_seconds)
    if growths == 0:
        return since + first
    seconds = max(first, MIN_DOUBLED_GROW_SECONDS) * 2.0 ** min(growths, _MAX_DOUBLINGS)
    return since + max(first, min(seconds, MAX_GROW_SECONDS))


def compute_followed_nodes(previous: Status, facts: JobFacts, desired_nodes: int, *, starts_ranks: bool) -> int:
    """Return the new `status.elastic.followedNodes`: the last spec.nodes for which muster has started an attempt.

    `starts_ranks` is whether the attempt starts now.
    """
    before, last = previous.elastic, previous.last_restart
    # A restart that changes the number of nodes uses the current `spec.nodes`.
    has_followed = starts_ranks and last is not None and last.reason == RESIZED
    if before is None or len(facts.nodes) >= desired_nodes or has_followed:
        return desired_nodes
    return min(before.followed_nodes, desired_nodes)


def _add_members(
    last: Sequence[int], candidates: Sequence[int] | set[int], resize_input: ResizeInput
) -> tuple[int, ...]:
    """Add candidates up to spec.nodes members. If these are fewer than minNodes, add nodes that aren't ready."""
    others = sorted(set(candidates).difference(last))
    members = (*last, *others[: max(0, resize_input.count - len(last))])
    missing = resize_input.elastic.min_nodes - len(members)
    if missing <= 0:
        return members
    unready = sorted(set(range(resize_input.elastic.max_nodes)).difference(members))
    return (*members, *unready[:missing])


def _limit_members(members: Sequence[int], ready_nodes: set[int], count: int) -> tuple[int, ...]:
    """Return at most `count` members. Drop members that are not ready first, and then the members with high ranks."""
    by_priority = sorted(range(len(members)), key=lambda rank: (members[rank] not in ready_nodes, rank))
    return tuple(members[rank] for rank in sorted(by_priority[:count]))


def _find_joining_nodes(facts: JobFacts, count: int, now: float) -> tuple[NodeFacts, ...]:
    """Return the nodes that can join now; () while others are scheduled and still starting."""
    others = [node for node in facts.non_members if not will_end(node)]
    ready_nodes = [node for node in others if node.is_ready and not facts.is_silent(node, now)]
    if len(ready_nodes) < count and any(_is_starting(node) for node in others):
        return ()
    return tuple(ready_nodes[:count])


def _is_starting(node: NodeFacts) -> bool:
    """Whether the node will be ready soon, as far as its pod and its agent show."""
    process, agent = node.process, node.current_agent
    if process.state not in (ProcessState.WAITING, ProcessState.RUNNING) or not node.is_scheduled or node.is_ready:
        return False
    # The others must not wait for a node that can't start.
    if agent is not None and agent.report.problem is not None:
        return False
    return process.problem is None or process.problem.reason == FETCHING_FILES


def _is_ready(node: NodeFacts, resize_input: ResizeInput) -> bool:
    return node.is_ready and not will_end(node) and not resize_input.facts.is_silent(node, resize_input.now)


def _may_ranks_still_run(previous: Status, members: Sequence[NodeFacts]) -> bool:
    """Whether ranks of the last attempt may run. A new leader has not received reports of all agents yet."""
    return are_all_cut_off(members) or any(_may_node_run(previous, node) for node in members)


def _may_node_run(previous: Status, node: NodeFacts) -> bool:
    process, agent, restarts = node.process, node.current_agent, previous.restarts
    if process.state is not ProcessState.RUNNING:
        return False
    if agent is None:
        # A pod that is newer than the restart has never run ranks.
        return not previous.is_restarting or restarts is None or process.replacement < restarts.replacement
    return agent.report.phase not in (AgentPhase.READY, AgentPhase.ENDED)

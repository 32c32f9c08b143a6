"""Problems of a node that affect decisions, and problems that follow from missing reports."""

from dataclasses import replace

from muster.api.timestamps import format_seconds
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessState, RankFacts

AGENT_UNREACHABLE = "AgentUnreachable"
NODE_SILENT = "NodeSilent"
OOM_KILLED = "OOMKilled"
CONTAINER_KILLED = "ContainerKilled"
POD_DELETED = "PodDeleted"
PREEMPTED = "Preempted"
UNSCHEDULABLE = "Unschedulable"
SCHEDULING_GATED = "SchedulingGated"
QUOTA_EXCEEDED = "QuotaExceeded"
FETCHING_FILES = "FetchingFiles"

UNREACHABLE_SECONDS = 30.0
"""How long an agent may run before its first report: Python on a cold disk takes seconds to start."""

_UNREACHABLE = Problem(
    AGENT_UNREACHABLE,
    f"its agent has run for {UNREACHABLE_SECONDS:.0f} s and was not heard; look for a NetworkPolicy that keeps the "
    "job's pods from muster's collector",
)


def unreachable_at(node: NodeFacts, facts: JobFacts) -> float | None:
    """When the node's agent counts as unreachable if no report arrives; None if it has reported or doesn't run."""
    process = node.process
    if process.state is not ProcessState.RUNNING or process.started_at is None or node.current_agent is not None:
        return None
    # After its own restart the operator gives agents time to report.
    return max(process.started_at, facts.collector_started_at) + UNREACHABLE_SECONDS


def may_still_report(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the agent's first report is missing but not late yet."""
    at = unreachable_at(node, facts)
    return at is not None and now < at


def with_problem(node: NodeFacts, facts: JobFacts, now: float) -> NodeFacts:
    """The node with the problem that its facts show at `now` (Unix seconds), if any."""
    at = unreachable_at(node, facts)
    # A problem that the backend observed is closer to the cause.
    if node.process.problem is not None:
        return _with_largest_rank(node)
    if at is not None and now >= at:
        return _with_problem(node, _UNREACHABLE)
    silence_problem = _silence_problem(node, facts, now)
    return node if silence_problem is None else _with_problem(node, silence_problem)


def _silence_problem(node: NodeFacts, facts: JobFacts, now: float) -> Problem | None:
    """The problem of a pod whose agent has stopped reporting."""
    process, agent = node.process, node.agent
    # A local agent is silent only when the machine is busy.
    if process.name is None or agent is None or not facts.is_silent(node, now):
        return None
    since = f"the agent in pod {process.name} has not reported since {format_seconds(agent.last_report_at)}"
    kube_node = (
        "its machine" if process.machine is None else f"{process.machine} (`kubectl get node {process.machine}`)"
    )
    return Problem(NODE_SILENT, f"{since}; {kube_node} may be down or cut off")


def _with_largest_rank(node: NodeFacts) -> NodeFacts:
    """Add the rank with the most memory in the last report: the kernel may kill the whole container."""
    problem, agent = node.process.problem, node.current_agent
    if problem is None or problem.reason not in (OOM_KILLED, CONTAINER_KILLED) or agent is None:
        return node
    largest = max(agent.ranks, key=_memory_bytes, default=None)
    if largest is None or not _memory_bytes(largest):
        return node
    text = f"{problem.message}; rank {largest.report.rank} held most: {_memory_bytes(largest) / 2**20:,.0f} MiB"
    return _with_problem(node, Problem(problem.reason, text))


def _memory_bytes(rank: RankFacts) -> int:
    return rank.report.rss_bytes or 0


def _with_problem(node: NodeFacts, problem: Problem) -> NodeFacts:
    return replace(node, process=replace(node.process, problem=problem))

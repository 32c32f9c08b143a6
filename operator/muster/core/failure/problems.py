"""The problems of a node that decide something, and those that follow from its facts and the time."""

from dataclasses import replace

from muster.api.timestamps import to_seconds
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
"""How long an agent may run without a report: interpreters on a cold disk take seconds to begin."""

_UNREACHABLE = Problem(
    AGENT_UNREACHABLE,
    f"its agent has run for {UNREACHABLE_SECONDS:.0f} s and was not heard; look for a NetworkPolicy that keeps the "
    "job's pods from muster's collector",
)


def unreachable_at(node: NodeFacts, facts: JobFacts) -> float | None:
    """When the node's agent counts as unreachable if no report comes; None for one that was heard, or doesn't run."""
    process = node.process
    if process.state is not ProcessState.RUNNING or process.started_at is None or node.current_agent is not None:
        return None
    # An operator that has just started gives agents time to report.
    return max(process.started_at, facts.listening_since) + UNREACHABLE_SECONDS


def may_yet_speak(node: NodeFacts, facts: JobFacts, now: float) -> bool:
    """Whether the node's agent was not heard and isn't late with it: what it knows is missing from the facts."""
    at = unreachable_at(node, facts)
    return at is not None and now < at


def with_problem(node: NodeFacts, facts: JobFacts, now: float) -> NodeFacts:
    """The node with the problem that its facts amount to at `now` (Unix seconds), if they do."""
    at = unreachable_at(node, facts)
    # What the backend knows of the pod is nearer to the cause.
    if node.process.problem is not None:
        return _with_suspect(node)
    if at is not None and now >= at:
        return _with_problem(node, _UNREACHABLE)
    silence = _silence(node, facts, now)
    return node if silence is None else _with_problem(node, silence)


def _silence(node: NodeFacts, facts: JobFacts, now: float) -> Problem | None:
    """The problem of a pod whose agent was heard before and is not any more."""
    process, agent = node.process, node.agent
    # On this machine a silent agent is a busy one.
    if process.name is None or agent is None or not facts.is_silent(node, now):
        return None
    since = f"the agent in pod {process.name} has not reported since {to_seconds(agent.heard_at)}"
    where = "its machine" if process.machine is None else f"{process.machine} (`kubectl get node {process.machine}`)"
    return Problem(NODE_SILENT, f"{since}; {where} may be down or cut off")


def _with_suspect(node: NodeFacts) -> NodeFacts:
    """The kernel may kill a container whole; which rank held most of its memory was in the last report."""
    problem, agent = node.process.problem, node.current_agent
    if problem is None or problem.reason not in (OOM_KILLED, CONTAINER_KILLED) or agent is None:
        return node
    suspect = max(agent.ranks, key=_memory, default=None)
    if suspect is None or not _memory(suspect):
        return node
    value = f"{problem.message}; rank {suspect.report.rank} held most: {_memory(suspect) / 2**20:,.0f} MiB"
    return _with_problem(node, Problem(problem.reason, value))


def _memory(rank: RankFacts) -> int:
    return rank.report.rss_bytes or 0


def _with_problem(node: NodeFacts, problem: Problem) -> NodeFacts:
    return replace(node, process=replace(node.process, problem=problem))

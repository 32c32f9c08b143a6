"""The ends of ranks, launchers and agents, derived from a job's facts and ordered by time."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from muster.core.facts import JobFacts, NodeFacts, RankFacts

AGENT_LOST = "AgentLost"
NODE_LOST = "NodeLost"
NODE_STOPPED = "NodeStopped"
STRAGGLER = "Straggler"


class EndKind(StrEnum):
    """What ended. NODE is an agent that could not start or complete its work."""

    RANK = "Rank"
    LAUNCHER = "Launcher"
    AGENT = "Agent"
    NODE = "Node"


@dataclass(frozen=True)
class End:
    """The end of one rank, launcher or agent at `at` (Unix seconds). `rank` is set for ranks, `name` for launchers.

    `stopped` is set if muster stopped the process. If muster detected the end late, `since` is the earliest possible
    time of the end.
    """

    kind: EndKind
    node: int
    node_name: str
    at: float
    rank: int | None = None
    name: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    lines: tuple[str, ...] = ()
    step: int | None = None
    activity: str | None = None
    stopped: bool = False
    rss_bytes: int | None = None
    memory_limit: str = ""
    since: float | None = None

    @property
    def earliest(self) -> float:
        """The earliest possible time of the end (Unix seconds)."""
        return self.at if self.since is None else min(self.since, self.at)

    @property
    def is_success(self) -> bool:
        """Whether the process exited by itself with code 0."""
        return self.exit_code == 0 and self.reason is None and not self.stopped

    @property
    def failure_reason(self) -> str:
        """The reason of a failure, as a CamelCase word."""
        if self.reason is not None:
            return self.reason
        if self.kind is EndKind.LAUNCHER:
            return "LauncherFailed"
        # The rank had already failed before muster stopped it.
        return "RankFailed" if self.signal is None or self.stopped else "RankKilled"


def list_rank_ends(facts: JobFacts) -> tuple[End, ...]:
    """Return the ends of all ranks, successful or not, ordered by time."""
    return sort_ends(end for node in facts.nodes for end in list_node_rank_ends(node))


def list_node_rank_ends(node: NodeFacts) -> tuple[End, ...]:
    """Return the ends of the node's ranks."""
    return tuple(_build_rank_end(node, rank) for rank in node.ranks if rank.has_exited)


def sort_ends(ends: Iterable[End]) -> tuple[End, ...]:
    """Sort ends by time, then by node and rank."""
    return tuple(sorted(ends, key=lambda end: (end.at, end.node, -1 if end.rank is None else end.rank)))


def build_problem_end(facts: JobFacts, node: NodeFacts) -> End | None:
    """Return an end for the problem that kept the agent from its work; None without a problem."""
    agent = node.current_agent
    if agent is None or agent.report.problem is None:
        return None
    problem = agent.report.problem
    lines = (problem.message,)
    # Ranks can't cause an agent's problem. So its time is the job's creation, or the last rank's end if a rank ended.
    at = max((end.at for end in list_node_rank_ends(node)), default=facts.created_at)
    return End(EndKind.NODE, node.node, node.name, at, reason=problem.reason, lines=lines)


def build_agent_end(node: NodeFacts, at: float, reason: str, *, since: float | None = None) -> End:
    """Return the end of the node's agent; `reason` is the default for a process without a problem."""
    process = node.process
    lines = (process.problem.message,) if process.problem is not None else ()
    return End(
        EndKind.AGENT,
        node.node,
        node.name,
        at,
        exit_code=process.exit_code,
        signal=process.signal,
        # The backend's observation of the pod is more precise than the default.
        reason=process.problem.reason if process.problem is not None else reason,
        lines=lines,
        since=since,
    )


def _build_rank_end(node: NodeFacts, rank: RankFacts) -> End:
    report = rank.report
    last_report_at = node.agent.last_report_at if node.agent is not None else 0.0
    return End(
        EndKind.RANK,
        node.node,
        node.name,
        rank.ended_at if rank.ended_at is not None else last_report_at,
        rank=report.rank,
        exit_code=report.exit_code,
        signal=report.signal,
        reason=report.reason,
        lines=report.last_lines,
        step=report.step,
        activity=report.activity,
        stopped=report.stopped,
        rss_bytes=report.rss_bytes,
        memory_limit=node.process.memory_limit,
    )


def build_launcher_end(node: NodeFacts) -> End | None:
    """Return the end of the node's launcher, successful or not; None while it runs."""
    launcher = node.launcher
    if launcher is None:
        return None
    end = launcher.end
    return End(
        EndKind.LAUNCHER,
        node.node,
        node.name,
        launcher.ended_at,
        name=end.name,
        exit_code=end.exit_code,
        signal=end.signal,
        reason=end.reason,
        lines=end.last_lines,
    )

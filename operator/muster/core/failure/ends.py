"""What ended, and how: the ranks, launchers and agents that a job's facts tell of, in the order of their ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from muster.core.facts import JobFacts, LauncherFacts, NodeFacts, RankFacts

AGENT_LOST = "AgentLost"
NODE_LOST = "NodeLost"
NODE_STOPPED = "NodeStopped"


class Subject(StrEnum):
    """What ended."""

    RANK = "Rank"
    LAUNCHER = "Launcher"
    AGENT = "Agent"
    NODE = "Node"


@dataclass(frozen=True)
class End:
    """How something of a node ended, at `at` (Unix seconds). `rank` is set for ranks, `name` for launchers.

    `since` is set where it may have ended earlier than it showed: muster may hear of the secondary failures of an
    unseen end first.
    """

    subject: Subject
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
        """When it may have ended."""
        return self.at if self.since is None else min(self.since, self.at)

    @property
    def is_good(self) -> bool:
        """It came to its own end, with exit code 0."""
        return self.exit_code == 0 and self.reason is None and not self.stopped

    @property
    def why(self) -> str:
        """A bad end as one CamelCase word."""
        if self.reason is not None:
            return self.reason
        if self.subject is Subject.LAUNCHER:
            return "LauncherFailed"
        # A signal that met it on its way out is not what ended it.
        return "RankFailed" if self.signal is None or self.stopped else "RankKilled"


def rank_ends(facts: JobFacts) -> tuple[End, ...]:
    """The ends of all ranks, good and bad, first one first."""
    return in_order(end for node in facts.nodes for end in rank_ends_of(node))


def rank_ends_of(node: NodeFacts) -> tuple[End, ...]:
    """The ends of the node's ranks."""
    return tuple(_rank_end(node, rank) for rank in node.ranks if rank.has_exited)


def in_order(ends: Iterable[End]) -> tuple[End, ...]:
    """The ends as they happened; of two at the same time the lower node's and rank's first."""
    return tuple(sorted(ends, key=lambda end: (end.at, end.node, -1 if end.rank is None else end.rank)))


def problem_end(facts: JobFacts, node: NodeFacts) -> End | None:
    """Why the node's agent could not begin its work, or not end it; None when it could."""
    agent = node.current_agent
    if agent is None or agent.report.problem is None:
        return None
    problem = agent.report.problem
    words = (problem.message,)
    # Nothing that ranks do keeps an agent from working, so it counts as what came first; unless they have ended before.
    at = max((end.at for end in rank_ends_of(node)), default=facts.created_at)
    return End(Subject.NODE, node.node, node.name, at, reason=problem.reason, lines=words)


def agent_end(node: NodeFacts, at: float, reason: str, *, since: float | None = None) -> End:
    """The end of the node's agent, as its process tells of it; `reason` is for want of a better one."""
    process = node.process
    words = (process.problem.message,) if process.problem is not None else ()
    return End(
        Subject.AGENT,
        node.node,
        node.name,
        at,
        exit_code=process.exit_code,
        signal=process.signal,
        # Whoever looks at the pod from outside knows why its agent was stopped.
        reason=process.problem.reason if process.problem is not None else reason,
        lines=words,
        since=since,
    )


def _rank_end(node: NodeFacts, rank: RankFacts) -> End:
    report = rank.report
    heard_at = node.agent.heard_at if node.agent is not None else 0.0
    return End(
        Subject.RANK,
        node.node,
        node.name,
        rank.ended_at if rank.ended_at is not None else heard_at,
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


def launcher_end(node: NodeFacts) -> End | None:
    """The end of the node's launcher, good or bad; None while it runs."""
    agent = node.current_agent
    launcher: LauncherFacts | None = None if agent is None else agent.launcher
    if launcher is None:
        return None
    end = launcher.end
    return End(
        Subject.LAUNCHER,
        node.node,
        node.name,
        launcher.ended_at,
        name=end.name,
        exit_code=end.exit_code,
        signal=end.signal,
        reason=end.reason,
        lines=end.last_lines,
    )

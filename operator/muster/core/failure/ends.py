"""The ends of ranks, launchers and agents, derived from a job's facts and ordered by time."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.failure import rank_output

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
    time of the end. `error` is the rank's own error, which it raised at `error_at`, before muster stopped it; "" if it
    is unknown. `is_printed` is set if only the output has it, so that the rank may have handled it. `is_running` is set
    for a rank that has raised an error that nothing caught, but has not ended.
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
    error: str = ""
    error_at: float | None = None
    is_printed: bool = False
    is_running: bool = False

    @property
    def failed_at(self) -> float:
        """When the rank raised its error, or else the end (Unix seconds). A rank may end long after its error."""
        return self.at if self.error_at is None or self.is_printed else min(self.error_at, self.at)

    @property
    def earliest(self) -> float:
        """The earliest possible time of the failure (Unix seconds)."""
        return self.failed_at if self.since is None else min(self.since, self.failed_at)

    @property
    def error_line(self) -> str:
        """The error in one line: the rank's own, or else what its last lines show; "" without lines."""
        return rank_output.get_message(self.error) or rank_output.find_error_line(self.lines)

    @property
    def error_signature(self) -> str:
        """The error line without numbers, which is the same for ranks with the same error."""
        return rank_output.normalize_error_line((self.error_line,))

    @property
    def mentions_lost_peer(self) -> bool:
        """Whether the error is that of a rank that lost a peer, the store or its launcher."""
        return rank_output.mentions_lost_peer(tuple(self.error.split("\n")) if self.error else self.lines)

    @property
    def has_own_error(self) -> bool:
        """Whether the rank raised an error of its own, not because it lost a peer."""
        return bool(self.error) and not self.is_printed and not self.mentions_lost_peer

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


def list_failing_ranks(node: NodeFacts) -> tuple[End, ...]:
    """Return the node's ranks that run although nothing has caught their error: their teardown takes long."""
    if node.is_idle:
        return ()
    return tuple(_build_rank_end(node, rank) for rank in node.ranks if rank.is_failing)


def sort_ends(ends: Iterable[End]) -> tuple[End, ...]:
    """Sort ends by the time of the failure, then by node and rank."""
    return tuple(sorted(ends, key=lambda end: (end.failed_at, end.node, -1 if end.rank is None else end.rank)))


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
    times = (rank.ended_at, rank.error_at, last_report_at)
    return End(
        EndKind.RANK,
        node.node,
        node.name,
        next(at for at in times if at is not None),
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
        error="" if report.error is None else report.error.text,
        error_at=rank.error_at,
        is_printed=report.error is not None and report.error.printed,
        is_running=not rank.has_exited,
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

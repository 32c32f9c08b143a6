"""Collect the ranks' reports in a training job's logs, and convert them to agents' reports."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from muster.core.facts import AgentFacts, MetricFacts, RankFacts
from muster.diagnose.sagemaker.launcher_output import LauncherOutput
from muster.diagnose.sagemaker.log_lines import RankLogReport, WorldLimits, parse_rank_report
from muster_worker.contract import log_line
from muster_worker.contract.schema import MAX_METRICS, AgentPhase, AgentProblem, RankState, Report

MAX_STREAMS = 4096
"""The maximum number of streams with a stored partial line. Each start of a host has its own stream."""

_MAX_PARTIAL_LINE_CHARS = 2 * log_line.MAX_CHARS


@dataclass(frozen=True)
class LogLine:
    """A line of a log stream (`<training job>/algo-1-...`), logged at `at` (Unix seconds)."""

    stream: str
    at: float
    text: str


@dataclass(frozen=True)
class RankGroup:
    """The ranks of one attempt. `has_launcher` is set if torchrun or mpirun determines the world size."""

    job_uid: str
    attempt: int
    nodes: int
    procs_per_node: int
    created_at: float
    has_launcher: bool

    @property
    def world(self) -> WorldLimits:
        return WorldLimits(self.nodes * self.procs_per_node, self.created_at)


@dataclass
class RankLog:
    """Collects the reports of one attempt. Lines may repeat. Its memory grows only with the number of ranks."""

    rank_group: RankGroup
    _ranks: dict[int, RankFacts] = field(default_factory=dict)
    _metrics: dict[tuple[int, str], MetricFacts] = field(default_factory=dict)
    _last_report_at: dict[int, float] = field(default_factory=dict)
    _worlds: dict[int, int] = field(default_factory=dict)
    _partial_lines: dict[str, str] = field(default_factory=dict)
    _launcher_output: LauncherOutput = field(init=False)

    def __post_init__(self) -> None:
        self._launcher_output = LauncherOutput(self.rank_group.procs_per_node, self.rank_group.world)

    def feed(self, lines: Iterable[LogLine]) -> bool:
        """Parse lines, in the order of each stream; return whether a line reports a change."""
        has_changed = False
        for line in lines:
            rank_report = self._read_line(line)
            if rank_report is not None:
                self._merge_report(rank_report)
                has_changed = True
            else:
                has_changed = self._launcher_output.feed(line.stream, line.at, line.text) or has_changed
        return has_changed

    def list_agents(self) -> tuple[AgentFacts, ...]:
        """Return the facts of each node with reports, in the order of nodes."""
        ranks = self._combine_ranks()
        nodes = sorted({rank // self.rank_group.procs_per_node for rank in ranks})
        return tuple(self._build_agent_facts(node, ranks) for node in nodes)

    def _read_line(self, line: LogLine) -> RankLogReport | None:
        rank_report = parse_rank_report(line.text, line.at, self.rank_group.world)
        partial_line = self._partial_lines.pop(line.stream, None)
        if rank_report is None and partial_line is not None:
            # SageMaker's toolkit reads output in pieces of 64 KiB, and adds a line end to each.
            rank_report = parse_rank_report(partial_line + line.text, line.at, self.rank_group.world)
        if rank_report is None and log_line.MARK in line.text and len(self._partial_lines) < MAX_STREAMS:
            self._partial_lines[line.stream] = line.text[-_MAX_PARTIAL_LINE_CHARS:]
        return rank_report

    def _merge_report(self, rank_report: RankLogReport) -> None:
        rank = rank_report.facts.report.rank
        entry = self._ranks.get(rank)
        self._ranks[rank] = rank_report.facts if entry is None else _merge_reports(entry, rank_report.facts)
        node = rank // self.rank_group.procs_per_node
        self._last_report_at[node] = max(self._last_report_at.get(node, 0.0), rank_report.reported_at)
        self._worlds[node] = rank_report.world
        for metric in rank_report.metrics:
            key = (node, metric.value.name)
            previous = self._metrics.get(key)
            if previous is None or previous.at <= metric.at:
                self._metrics[key] = metric

    def _combine_ranks(self) -> dict[int, RankFacts]:
        """Return the ranks' own reports, and the launcher's output about the other ranks."""
        ranks = dict(self._ranks)
        for facts in self._launcher_output.list_ranks():
            reported = ranks.get(facts.report.rank)
            if reported is None:
                ranks[facts.report.rank] = facts
            elif reported.report.state != RankState.EXITED and facts.report.state == RankState.EXITED:
                # The rank was killed together with its wrapper, or its last line was lost.
                ranks[facts.report.rank] = _copy_end(reported, facts)
        return ranks

    def _build_agent_facts(self, node: int, ranks: dict[int, RankFacts]) -> AgentFacts:
        rank_group = self.rank_group
        first = node * rank_group.procs_per_node
        reported = tuple(ranks[rank] for rank in range(first, first + rank_group.procs_per_node) if rank in ranks)
        has_ended = len(reported) == rank_group.procs_per_node and all(
            facts.report.state == RankState.EXITED for facts in reported
        )
        metrics = sorted((metric for (at, _), metric in self._metrics.items() if at == node), key=_get_metric_name)
        times = [facts.ended_at or facts.started_at or rank_group.created_at for facts in reported]
        report = Report(
            job_uid=rank_group.job_uid,
            node=node,
            replacement=0,
            attempt=rank_group.attempt,
            sequence=0,
            phase=AgentPhase.ENDED if has_ended else AgentPhase.RUNNING,
            ranks=tuple(facts.report for facts in reported),
            metrics=tuple(metric.value for metric in metrics[:MAX_METRICS]),
            problem=self._find_problem(node),
        )
        last_report_at = self._last_report_at.get(node, max(times))
        return AgentFacts(report, last_report_at, reported, tuple(metrics[:MAX_METRICS]))

    def _find_problem(self, node: int) -> AgentProblem | None:
        """Return the problem of ranks with a wrong world size; None otherwise."""
        world = self._worlds.get(node)
        if not self.rank_group.has_launcher or world is None or world == self.rank_group.world.ranks:
            return None
        return AgentProblem("WorldSizeMismatch", f"ranks were given a world of {world}")


def _merge_reports(facts: RankFacts, rank_report: RankFacts) -> RankFacts:
    """Merge two reports of a rank.

    A newer start replaces an older one. Within a start, an end is final and steps only grow.
    """
    known_start, start = facts.started_at or 0.0, rank_report.started_at or 0.0
    if start != known_start:
        return rank_report if start > known_start else facts
    if facts.report.state == RankState.EXITED:
        return facts
    if rank_report.report.state == RankState.EXITED:
        return rank_report
    latest = rank_report if (rank_report.report.step or 0) >= (facts.report.step or 0) else facts
    # A script may count its steps from 0 again. That is progress, too.
    return replace(
        latest, last_step_at=max((at for at in (facts.last_step_at, rank_report.last_step_at) if at), default=None)
    )


def _copy_end(reported_rank: RankFacts, facts: RankFacts) -> RankFacts:
    report = replace(
        reported_rank.report,
        state=RankState.EXITED,
        exit_code=facts.report.exit_code,
        signal=facts.report.signal,
        last_lines=facts.report.last_lines,
    )
    return replace(reported_rank, report=report, ended_at=facts.ended_at)


def _get_metric_name(metric: MetricFacts) -> str:
    return metric.value.name

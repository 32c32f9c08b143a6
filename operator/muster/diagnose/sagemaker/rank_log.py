"""All that a training job's logs have said of its ranks, line after line, as the reports of agents would say it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from muster.core.facts import AgentFacts, MetricFacts, RankFacts
from muster.diagnose.sagemaker.launcher_words import LauncherWords
from muster.diagnose.sagemaker.log_lines import RankWord, World, rank_word
from muster_worker.contract import log_line
from muster_worker.contract.schema import MAX_METRICS, AgentPhase, AgentProblem, RankState, Report

MAX_STREAMS = 4096
"""Of which a piece of a line is remembered; a job has one a host, and one more for each time that it was restarted."""

_MAX_PIECE_CHARS = 2 * log_line.MAX_CHARS


@dataclass(frozen=True)
class LogLine:
    """A line of a log: its stream (`<training job>/algo-1-...`), and when it came there, in Unix seconds."""

    stream: str
    at: float
    text: str


@dataclass(frozen=True)
class RankGroup:
    """The attempt of a job whose logs these are, and its nodes that have ranks.

    `has_launcher`: a torchrun or mpirun says how large the world is.
    """

    job_uid: str
    attempt: int
    nodes: int
    procs_per_node: int
    created_at: float
    has_launcher: bool

    @property
    def world(self) -> World:
        return World(self.nodes * self.procs_per_node, self.created_at)


@dataclass
class RankLog:
    """Of one attempt. Its size is bounded by the number of ranks, whatever the logs hold. Lines may come twice."""

    rank_group: RankGroup
    _ranks: dict[int, RankFacts] = field(default_factory=dict)
    _metrics: dict[tuple[int, str], MetricFacts] = field(default_factory=dict)
    _heard_at: dict[int, float] = field(default_factory=dict)
    _worlds: dict[int, int] = field(default_factory=dict)
    _pieces: dict[str, str] = field(default_factory=dict)
    _words: LauncherWords = field(init=False)

    def __post_init__(self) -> None:
        self._words = LauncherWords(self.rank_group.procs_per_node, self.rank_group.world)

    def feed(self, lines: Iterable[LogLine]) -> bool:
        """Take lines in, each stream's in its order; whether they told anything."""
        is_told = False
        for line in lines:
            word = self._read(line)
            if word is not None:
                self._take(word)
                is_told = True
            else:
                is_told = self._words.feed(line.stream, line.at, line.text) or is_told
        return is_told

    def agents(self) -> tuple[AgentFacts, ...]:
        """What is known of each node that was heard, in the nodes' order."""
        ranks = self._all_ranks()
        nodes = sorted({rank // self.rank_group.procs_per_node for rank in ranks})
        return tuple(self._agent(node, ranks) for node in nodes)

    def _read(self, line: LogLine) -> RankWord | None:
        word = rank_word(line.text, line.at, self.rank_group.world)
        begun = self._pieces.pop(line.stream, None)
        if word is None and begun is not None:
            # SageMaker's toolkit reads 64 KiB at a time, and ends a line where that ends
            word = rank_word(begun + line.text, line.at, self.rank_group.world)
        if word is None and log_line.MARK in line.text and len(self._pieces) < MAX_STREAMS:
            self._pieces[line.stream] = line.text[-_MAX_PIECE_CHARS:]
        return word

    def _take(self, word: RankWord) -> None:
        rank = word.facts.report.rank
        entry = self._ranks.get(rank)
        self._ranks[rank] = word.facts if entry is None else _newer(entry, word.facts)
        node = rank // self.rank_group.procs_per_node
        self._heard_at[node] = max(self._heard_at.get(node, 0.0), word.said_at)
        self._worlds[node] = word.world
        for metric in word.metrics:
            key = (node, metric.value.name)
            before = self._metrics.get(key)
            if before is None or before.at <= metric.at:
                self._metrics[key] = metric

    def _all_ranks(self) -> dict[int, RankFacts]:
        """What ranks said themselves, and of those that didn't what their launcher did."""
        ranks = dict(self._ranks)
        for facts in self._words.ranks():
            own = ranks.get(facts.report.rank)
            if own is None:
                ranks[facts.report.rank] = facts
            elif own.report.state != RankState.EXITED and facts.report.state == RankState.EXITED:
                # its wrapper was killed with it, or its last line is lost
                ranks[facts.report.rank] = _ended_as(own, facts)
        return ranks

    def _agent(self, node: int, ranks: dict[int, RankFacts]) -> AgentFacts:
        rank_group = self.rank_group
        first = node * rank_group.procs_per_node
        own = tuple(ranks[rank] for rank in range(first, first + rank_group.procs_per_node) if rank in ranks)
        over = len(own) == rank_group.procs_per_node and all(facts.report.state == RankState.EXITED for facts in own)
        metrics = sorted((metric for (at, _), metric in self._metrics.items() if at == node), key=_name)
        times = [facts.ended_at or facts.started_at or rank_group.created_at for facts in own]
        report = Report(
            job_uid=rank_group.job_uid,
            node=node,
            replacement=0,
            attempt=rank_group.attempt,
            sequence=0,
            phase=AgentPhase.ENDED if over else AgentPhase.RUNNING,
            ranks=tuple(facts.report for facts in own),
            metrics=tuple(metric.value for metric in metrics[:MAX_METRICS]),
            problem=self._problem(node),
        )
        heard_at = self._heard_at.get(node, max(times))
        return AgentFacts(report, heard_at, own, tuple(metrics[:MAX_METRICS]))

    def _problem(self, node: int) -> AgentProblem | None:
        """Ranks of another world than the job's do something else than the job."""
        value = self._worlds.get(node)
        if not self.rank_group.has_launcher or value is None or value == self.rank_group.world.ranks:
            return None
        return AgentProblem("WorldSizeMismatch", f"ranks were given a world of {value}")


def _newer(facts: RankFacts, word: RankFacts) -> RankFacts:
    """Lines of one rank joined: the newer start counts; of one start an end is an end, and steps only rise."""
    known_start, start = facts.started_at or 0.0, word.started_at or 0.0
    if start != known_start:
        return word if start > known_start else facts
    if facts.report.state == RankState.EXITED:
        return facts
    if word.report.state == RankState.EXITED:
        return word
    return word if (word.report.step or 0) >= (facts.report.step or 0) else facts


def _ended_as(own: RankFacts, facts: RankFacts) -> RankFacts:
    report = replace(
        own.report,
        state=RankState.EXITED,
        exit_code=facts.report.exit_code,
        signal=facts.report.signal,
        last_lines=facts.report.last_lines,
    )
    return replace(own, report=report, ended_at=facts.ended_at)


def _name(metric: MetricFacts) -> str:
    return metric.value.name

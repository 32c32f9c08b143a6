"""What a line of a training job's log says of a rank, if it says anything and can be believed. Pure.

The job writes its own log, so all of it is the job's word about itself: it is read as one, within limits, and can say
nothing of another job.
"""

import re
from dataclasses import dataclass

from muster.core.facts import MetricFacts, RankFacts
from muster_worker.contract import log_line
from muster_worker.contract.log_line import RankLine
from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS, EndReason, MetricValue, RankReport, RankState

CLOCK_SLACK = 300.0
"""Seconds by which a host's clock may seem to be off; a time beyond counts as the log's own."""

MAX_WORD_CHARS = 256
MAX_METRICS = 64
"""Of one rank."""

MAX_EXIT_CODE = 255
MAX_SIGNAL = 64

_TAG = re.compile(r"\[\d+,(?:mpirank:)?\d+(?:,algo-\d+)?\]<std(?:out|err)>:")
"""Open MPI's, as it is and as SageMaker's toolkit writes it; also in the middle of a line that came in two pieces."""


@dataclass(frozen=True)
class World:
    """What is known of a job before any line: its ranks, and when it was created (Unix seconds)."""

    ranks: int
    created_at: float


@dataclass(frozen=True)
class RankWord:
    """A rank as one line tells of it. `world` is how many ranks its launcher told it of, `said_at` when it said so."""

    facts: RankFacts
    metrics: tuple[MetricFacts, ...]
    world: int
    host: str
    said_at: float


def rank_word(text: str, logged_at: float, world: World) -> RankWord | None:
    """What a rank's own line says, which came to the log at `logged_at` (Unix seconds); None when it is none.

    A line that can't be of this job counts as none, as one that is cut does: the next one says it again.
    """
    line = log_line.read(_TAG.sub("", text)) if log_line.MARK in text else None
    if line is None or not _is_plausible(line, world):
        return None
    times = _Times(world.created_at - CLOCK_SLACK, logged_at)
    ended = line.event == log_line.Event.ENDED
    report = RankReport(
        rank=line.rank,
        local_rank=line.local_rank,
        state=RankState.EXITED if ended else RankState.RUNNING,
        pid=line.pid,
        exit_code=line.exit_code if ended else None,
        signal=line.signal if ended else None,
        reason=line.reason if ended else None,
        last_lines=tuple(text[:MAX_LINE_CHARS] for text in line.last_lines[-MAX_LAST_LINES:]),
        step=line.step,
        no_step_reason=line.no_step_reason,
        activity=line.activity,
        rss_bytes=line.rss_bytes,
    )
    said_at = times.of(line.at)
    facts = RankFacts(
        report,
        started_at=times.of(line.started_at),
        ended_at=times.of(line.at if line.ended_at is None else line.ended_at) if ended else None,
        stepped_at=None if line.stepped_at is None else times.of(line.stepped_at),
    )
    return RankWord(facts, _metrics(line, said_at), line.world, line.host, said_at)


@dataclass(frozen=True)
class _Times:
    """No event of a job lies before it or after its line: the earliest end is the failure that a job is blamed on."""

    first: float
    last: float

    def of(self, at: float) -> float:
        return at if self.first <= at <= self.last + CLOCK_SLACK else self.last


def _is_plausible(line: RankLine, world: World) -> bool:
    if (
        line.event not in log_line.Event.ALL
        or not 0 <= line.rank < world.ranks
        or not 0 <= line.local_rank < world.ranks
    ):
        return False
    numbers = (line.step, line.rss_bytes, line.pid)
    if any(number is not None and number < 0 for number in numbers):
        return False
    words = (line.host, line.no_step_reason, line.activity)
    if any(word is not None and len(word) > MAX_WORD_CHARS for word in words):
        return False
    if line.reason is not None and line.reason not in EndReason.ALL:
        return False
    return line.event != log_line.Event.ENDED or _is_end(line)


def _is_end(line: RankLine) -> bool:
    if line.exit_code is not None:
        return line.signal is None and 0 <= line.exit_code <= MAX_EXIT_CODE
    return line.signal is not None and 1 <= line.signal <= MAX_SIGNAL


def _metrics(line: RankLine, at: float) -> tuple[MetricFacts, ...]:
    text = sorted(line.metrics.items())[:MAX_METRICS]
    return tuple(
        MetricFacts(MetricValue(name, value, line.rank, 0.0), at) for name, value in text if len(name) <= MAX_WORD_CHARS
    )

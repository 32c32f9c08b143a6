"""Parse a rank's report from a line of a training job's log. Pure.

Users write to their job's log, so its content is untrusted. A line can affect only its own job.
"""

import re
from dataclasses import dataclass

from muster.core.facts import MetricFacts, RankFacts
from muster.core.reports.check_trainer_status import find_trainer_status_problem
from muster_worker.contract import log_line
from muster_worker.contract.error_text import MAX_ERROR_CHARS, RankError
from muster_worker.contract.log_line import RankLine
from muster_worker.contract.schema import (
    MAX_LAST_LINES,
    MAX_LINE_CHARS,
    EndReason,
    MetricValue,
    RankReport,
    RankState,
)

CLOCK_TOLERANCE_SECONDS = 300.0
"""The maximum difference of a host's clock in seconds. Beyond it, use the time of CloudWatch Logs."""

MAX_WORD_CHARS = 256
MAX_METRICS = 64
"""The maximum number of metrics of a rank."""

MAX_EXIT_CODE = 255
MAX_SIGNAL = 64

_TAG = re.compile(r"\[\d+,(?:mpirank:)?\d+(?:,algo-\d+)?\]<std(?:out|err)>:")
"""The tag that Open MPI or SageMaker's toolkit adds. It may occur inside a line that was split."""


@dataclass(frozen=True)
class WorldLimits:
    """The limits of plausible reports: the number of the job's ranks, and the time of its creation (Unix seconds)."""

    ranks: int
    created_at: float


@dataclass(frozen=True)
class RankLogReport:
    """A rank's report in a line. `world` is the rank's world size, `reported_at` the time of the report."""

    facts: RankFacts
    metrics: tuple[MetricFacts, ...]
    world: int
    host: str
    reported_at: float


@dataclass(frozen=True)
class _Times:
    """Limits times to the period from the job's creation to the log line, because users may forge times."""

    first: float
    last: float

    def limit_time(self, at: float) -> float:
        return at if self.first <= at <= self.last + CLOCK_TOLERANCE_SECONDS else self.last


def parse_rank_report(text: str, logged_at: float, world: WorldLimits) -> RankLogReport | None:
    """Parse a rank's report in a line that was logged at `logged_at` (Unix seconds); None for any other line.

    Ignore invalid and truncated lines, because the next line repeats the content.
    """
    line = log_line.parse_line(_TAG.sub("", text)) if log_line.MARK in text else None
    if line is None or not _is_plausible(line, world):
        return None
    times = _Times(world.created_at - CLOCK_TOLERANCE_SECONDS, logged_at)
    reported_at = times.limit_time(line.at)
    return RankLogReport(
        _build_facts(line, times), _read_metrics(line, reported_at), line.world, line.host, reported_at
    )


def _build_facts(line: RankLine, times: _Times) -> RankFacts:
    ended, trainer_status = line.event == log_line.Event.ENDED, line.trainer_status
    return RankFacts(
        _build_report(line),
        started_at=times.limit_time(line.started_at),
        ended_at=times.limit_time(line.at if line.ended_at is None else line.ended_at) if ended else None,
        highest_step_at=None if line.stepped_at is None else times.limit_time(line.stepped_at),
        last_step_at=None if line.stepped_at is None else times.limit_time(line.stepped_at),
        phase_ended_at=None if line.phase_ended_at is None else times.limit_time(line.phase_ended_at),
        first_step_at=None if line.first_stepped_at is None else times.limit_time(line.first_stepped_at),
        trainer_status_at=None if trainer_status is None else times.limit_time(line.at - trainer_status.age),
        error_at=times.limit_time(line.error_at) if ended and line.error and line.error_at is not None else None,
    )


def _build_report(line: RankLine) -> RankReport:
    ended = line.event == log_line.Event.ENDED
    return RankReport(
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
        phase=line.phase,
        first_script_step=line.first_script_step,
        total_steps=line.total_steps or None,
        mean_steps_per_second=line.mean_steps_per_second,
        trainer_status=line.trainer_status,
        error=_build_error(line) if ended else None,
    )


def _build_error(line: RankLine) -> RankError | None:
    # The time of an error that was only printed is unknown.
    return RankError(line.error[:MAX_ERROR_CHARS], 0.0, printed=line.error_at is None) if line.error else None


def _is_plausible(line: RankLine, world: WorldLimits) -> bool:
    if (
        line.event not in log_line.Event.ALL
        or not 0 <= line.rank < world.ranks
        or not 0 <= line.local_rank < world.ranks
    ):
        return False
    numbers = (
        *(line.step, line.rss_bytes, line.pid),
        *(line.first_script_step, line.total_steps, line.mean_steps_per_second),
    )
    if any(number is not None and number < 0 for number in numbers):
        return False
    words = (line.host, line.no_step_reason, line.activity, line.phase)
    if any(word is not None and len(word) > MAX_WORD_CHARS for word in words):
        return False
    if line.reason is not None and line.reason not in EndReason.ALL:
        return False
    if find_trainer_status_problem(line.trainer_status, line.rank) is not None:
        return False
    return line.event != log_line.Event.ENDED or _is_valid_end(line)


def _is_valid_end(line: RankLine) -> bool:
    if line.exit_code is not None:
        return line.signal is None and 0 <= line.exit_code <= MAX_EXIT_CODE
    return line.signal is not None and 1 <= line.signal <= MAX_SIGNAL


def _read_metrics(line: RankLine, at: float) -> tuple[MetricFacts, ...]:
    text = sorted(line.metrics.items())[:MAX_METRICS]
    return tuple(
        MetricFacts(MetricValue(name, value, line.rank, 0.0), at) for name, value in text if len(name) <= MAX_WORD_CHARS
    )

"""A rank's report as a log line: `[muster] {json}` among the rank's own output, for ranks without an agent.

Each line is a complete snapshot, because logs may truncate or drop lines. Times are Unix seconds on the rank's host.
The job's own code could print such a line, so readers must not trust it.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Dict, Mapping, Match, Optional, Tuple

from muster_worker.contract import wire
from muster_worker.contract.trainer_status import TrainerStatus

MARK = "[muster] "

MAX_CHARS = 3500
"""Maximum length of a line, all ASCII. With mpirun's prefix, it is below Linux' PIPE_BUF (4096), so the write is
atomic."""

MAX_LINE_CHARS = 300
"""Maximum length of each of the rank's last lines, and of its error."""

MIN_INTERVAL_SECONDS = 30.0
MAX_INTERVAL_SECONDS = 120.0
LINES_PER_SECOND = 20
"""Maximum rate of all ranks together, unless that would need an interval above MAX_INTERVAL_SECONDS."""


_SEARCHED_TEXTS = re.compile(r"[E=:]|\.(?=real)|(?<=xla)/|(?<=Invalid )r|(?<=compiler)/")
_FIRST_CHARACTER = re.compile(r"^[ -~]")
"""Characters to write as JSON escapes (\\u0045), so that log searches don't match quoted text. SageMaker's toolkit
takes the first line with an error's name as the reason of a failure (sagemaker-training 5.1.4, `__init__.py`,
`process.py`). Regular expressions of metrics, such as `loss=([0-9.]+)`, would match quoted text, too."""

_ESCAPE_OFFSET = 0xE000
"""Unicode's private use area: a character at this offset is written as its escape."""


class Event:
    """The event that a line reports."""

    STARTED = "started"
    PROGRESS = "progress"  # at an interval
    ENDED = "ended"
    ALL = (STARTED, PROGRESS, ENDED)


@dataclass(frozen=True)
class RankLine:
    """A rank's state at `at`. Fields with the names of `RankReport` have the same meaning."""

    event: str
    host: str  # its name in the job: algo-1
    rank: int
    local_rank: int
    world: int  # the world size in the rank's environment
    at: float
    started_at: float
    pid: Optional[int] = None
    ended_at: Optional[float] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None
    last_lines: Tuple[str, ...] = ()
    step: Optional[int] = None
    stepped_at: Optional[float] = None
    no_step_reason: Optional[str] = None
    activity: Optional[str] = None
    rss_bytes: Optional[int] = None
    first_stepped_at: Optional[float] = None
    phase: Optional[str] = None
    phase_ended_at: Optional[float] = None
    metrics: Mapping[str, float] = field(default_factory=dict)  # reported by the script
    first_script_step: Optional[int] = None
    total_steps: Optional[int] = None
    mean_steps_per_second: Optional[float] = None
    trainer_status: Optional[TrainerStatus] = None
    error: Optional[str] = None  # of a rank that failed, as in `RankError`
    error_at: Optional[float] = None


def format_line(line: RankLine) -> str:
    """Format a line without its newline: ASCII, at most `MAX_CHARS`. The oldest output is dropped if necessary."""
    while True:
        text = MARK + _encode(line)
        if len(text) <= MAX_CHARS:
            return text
        if line.last_lines:
            line = replace(line, last_lines=line.last_lines[1:])
        elif line.metrics:
            line = replace(line, metrics={})
        else:
            line = replace(line, activity=None, reason=None, no_step_reason=None, error=None, host=line.host[:64])


def parse_line(text: str) -> Optional[RankLine]:
    """Find and decode a rank's line within a log line; None without a complete one."""
    start = text.find(MARK + "{")
    if start < 0:
        return None
    document = text[start + len(MARK) : start + MAX_CHARS]
    try:
        _, end = json.JSONDecoder().raw_decode(document)
        return wire.decode(RankLine, document[:end].encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def compute_interval(world: int) -> float:
    """Return the interval between two progress lines of a rank, for a world of this size."""
    return min(MAX_INTERVAL_SECONDS, max(MIN_INTERVAL_SECONDS, world / LINES_PER_SECOND))


def _encode(line: RankLine) -> str:
    escaped = replace(
        line,
        last_lines=tuple(_SEARCHED_TEXTS.sub(_escape, text) for text in line.last_lines),
        activity=None if line.activity is None else _SEARCHED_TEXTS.sub(_escape, line.activity),
        phase=None if line.phase is None else _SEARCHED_TEXTS.sub(_escape, line.phase),
        error=None if line.error is None else _SEARCHED_TEXTS.sub(_escape, line.error),
        metrics={_FIRST_CHARACTER.sub(_escape, name): value for name, value in line.metrics.items()},
    )
    fields: Dict[str, object] = {
        name: value for name, value in asdict(escaped).items() if value is not None and value not in ((), {})
    }
    text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    return text.replace(f"\\u{_ESCAPE_OFFSET >> 8:x}", "\\u00")


def _escape(match: Match[str]) -> str:
    return chr(_ESCAPE_OFFSET + ord(match[0]))

"""What a rank says where nobody listens but a log: one `[muster] {json}` line among the rank's own output.

A line is a snapshot of all that is known of its rank, so that the loss of one does no harm: logs cut lines and drop
them. Times are Unix seconds on the rank's host. The job writes into the same log, so a line proves nothing: whoever
reads it checks it as what the job says of itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Dict, Mapping, Match, Optional, Tuple

from muster_worker.contract import wire

MARK = "[muster] "

MAX_CHARS = 3500
"""Of a line, all ASCII. With what mpirun puts before it, it is written in one piece: Linux' PIPE_BUF is 4096."""

MAX_LINE_CHARS = 300
"""Of each of the rank's last lines."""

LEAST_PACE_SECONDS = 30.0
MOST_PACE_SECONDS = 120.0
LINES_PER_SECOND = 20
"""Of all ranks together, as long as none has to be without a word for more than the most pace."""


_WORDS_OF_OTHERS = re.compile(r"[E=:]|\.(?=real)|(?<=xla)/|(?<=Invalid )r|(?<=compiler)/")
_FIRST = re.compile(r"^[ -~]")
"""What a line quotes must not be found in it by who searches logs: SageMaker's toolkit, which takes the first line that
holds the name of an error for the reason of a failure (sagemaker-training 5.1.4, `__init__.py`, `process.py`), and
metrics' regular expressions, `loss=([0-9.]+)`. So some characters are written as JSON's \\u0045."""

_VEIL = 0xE000
"""Unicode's private use area: what stands for a character there is written as that character's escape."""


class Event:
    """Why a line was written."""

    STARTED = "started"
    PROGRESS = "progress"  # the pace says so
    ENDED = "ended"
    ALL = (STARTED, PROGRESS, ENDED)


@dataclass(frozen=True)
class RankLine:
    """All that is known of a rank at `at`. What `RankReport` has too means the same there."""

    event: str
    host: str  # its name in the job: algo-1
    rank: int
    local_rank: int
    world: int  # how many ranks its launcher told it of
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
    metrics: Mapping[str, float] = field(default_factory=dict)  # what the script reported by itself


def write(line: RankLine) -> str:
    """The line as it is printed, without its end: ASCII, at most `MAX_CHARS`; the oldest words are left out first."""
    while True:
        text = MARK + _json(line)
        if len(text) <= MAX_CHARS:
            return text
        if line.last_lines:
            line = replace(line, last_lines=line.last_lines[1:])
        elif line.metrics:
            line = replace(line, metrics={})
        else:
            line = replace(line, activity=None, reason=None, no_step_reason=None, host=line.host[:64])


def read(text: str) -> Optional[RankLine]:
    """The rank's line in a log's line, wherever in it; None when there is none, or none that is whole."""
    start = text.find(MARK + "{")
    if start < 0:
        return None
    document = text[start + len(MARK) : start + MAX_CHARS]
    try:
        _, end = json.JSONDecoder().raw_decode(document)
        return wire.decode(RankLine, document[:end].encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def pace_seconds(world: int) -> float:
    """How often a rank of so many writes its progress."""
    return min(MOST_PACE_SECONDS, max(LEAST_PACE_SECONDS, world / LINES_PER_SECOND))


def _json(line: RankLine) -> str:
    activity = replace(
        line,
        last_lines=tuple(_WORDS_OF_OTHERS.sub(_veiled, text) for text in line.last_lines),
        activity=None if line.activity is None else _WORDS_OF_OTHERS.sub(_veiled, line.activity),
        metrics={_FIRST.sub(_veiled, name): value for name, value in line.metrics.items()},
    )
    fields: Dict[str, object] = {
        name: value for name, value in asdict(activity).items() if value is not None and value not in ((), {})
    }
    text = json.dumps(fields, separators=(",", ":"), allow_nan=False)
    return text.replace(f"\\u{_VEIL >> 8:x}", "\\u00")


def _veiled(match: Match[str]) -> str:
    return chr(_VEIL + ord(match[0]))

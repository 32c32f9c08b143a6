"""Read the failures of ranks from the output of torchrun and mpirun, for jobs whose ranks don't report.

torchrun prints a table of its node's failed ranks (torch/distributed/elastic/multiprocessing/errors, since 1.9). Open
MPI prints sentences about the first failed rank. The ranks' last lines precede this output. They start with the rank:
`[rank3]: ` by torch, `[1,3]<stderr>:` by mpirun, or `[1,mpirank:3,algo-2]<stderr>:` by SageMaker's toolkit.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from muster.core.facts import RankFacts
from muster.diagnose.sagemaker.log_lines import MAX_EXIT_CODE, MAX_SIGNAL, WorldLimits
from muster_worker.contract import log_line
from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS, RankReport, RankState

_MAX_STREAMS = 4096
_AFTER_ROOT_CAUSE_SECONDS = 0.5
"""torchrun reports which failure was first, but rounds times to seconds.

So treat the other failures as this much later.
"""

_TAGGED = re.compile(r"\[\d+,(?:mpirank:)?(?P<rank>\d{1,7})(?:,algo-\d+)?\]<std(?P<stream>out|err)>:(?P<text>.*)")
_MARKED = re.compile(r"\[rank(?P<rank>\d{1,7})\]: ?(?P<text>.*)")

_ROOT_CAUSE = "Root Cause (first observed failure):"
_ENTRY = re.compile(r"\s*(?P<name>time|rank|exitcode)\s*: (?P<value>.*)")
_RANK = re.compile(r"(?P<rank>\d{1,7}) \(local_rank: \d+\)")
_EXIT_CODE = re.compile(r"(?P<code>-?\d{1,3}) \(pid: \d+\)")
_TIME = "%Y-%m-%d_%H:%M:%S"

_BY_SIGNAL = re.compile(
    r"mpirun noticed that process rank (?P<rank>\d{1,7}) with PID .* exited on signal (?P<signal>\d{1,2})\b"
)
_ABORTED = re.compile(r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7}) in communicator")
_ERROR_CODE = re.compile(r"\s*with errorcode (?P<code>-?\d{1,6})\b")
_PROCESS = re.compile(r"\s*Process name: \[\[\d+,\d+\],(?P<rank>\d{1,7})\]")
_CODE = re.compile(r"\s*Exit code:\s+(?P<code>\d{1,3})\b")


@dataclass
class _Stream:
    """What a stream has printed so far of a message with several lines."""

    at: float | None = None
    is_root: bool = False
    rank: int | None = None


@dataclass
class _Rank:
    """A rank's output. `since` is the time at which the rank first appeared in the log (Unix seconds)."""

    since: float
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LAST_LINES))
    end: tuple[float, int | None, int | None] | None = None


@dataclass
class LauncherOutput:
    """Parses the lines of a job's log streams. Its memory grows only with the number of ranks."""

    procs_per_node: int
    world: WorldLimits
    _ranks: dict[int, _Rank] = field(default_factory=dict)
    _streams: dict[str, _Stream] = field(default_factory=dict)

    def feed(self, stream: str, at: float, text: str) -> bool:
        """Parse a line that was logged at `at` (Unix seconds); return whether it reports a rank's end."""
        if log_line.MARK in text:
            return False
        tag_match = _TAGGED.match(text)
        if tag_match is not None:
            self._record_line(int(tag_match["rank"]), at, tag_match["text"] if tag_match["stream"] == "err" else "")
            # The line may be MPI_Abort's message, which the aborting rank prints.
            text = tag_match["text"]
        else:
            mark_match = _MARKED.match(text)
            if mark_match is not None:
                self._record_line(int(mark_match["rank"]), at, mark_match["text"])
                return False
        state = self._streams.get(stream)
        if state is None:
            state = _Stream()
            if len(self._streams) < _MAX_STREAMS:
                self._streams[stream] = state
        return self._parse_torchrun_line(state, at, text) or self._parse_mpirun_line(state, at, text)

    def list_ranks(self) -> Iterator[RankFacts]:
        """Yield all ranks that the output mentions."""
        for number, rank in sorted(self._ranks.items()):
            ended_at, code, signal = rank.end or (None, None, None)
            report = RankReport(
                number,
                number % self.procs_per_node,
                RankState.RUNNING if rank.end is None else RankState.EXITED,
                exit_code=code,
                signal=signal,
                last_lines=() if rank.end is None else tuple(rank.lines),
            )
            yield RankFacts(report, started_at=rank.since, ended_at=ended_at)

    def _record_line(self, number: int, at: float, text: str) -> _Rank | None:
        if not 0 <= number < self.world.ranks:
            return None
        rank = self._ranks.setdefault(number, _Rank(at))
        if text.strip():
            rank.lines.append(text.rstrip()[:MAX_LINE_CHARS])
        return rank

    def _record_end(self, number: int, at: float, code: int | None, signal: int | None) -> bool:
        rank = self._record_line(number, at, "")
        # Keep the first message about a rank's end, which has the most precise time.
        if rank is None or rank.end is not None:
            return False
        rank.end = (at, code, signal)
        rank.since = min(rank.since, at)
        return True

    def _parse_torchrun_line(self, stream: _Stream, at: float, text: str) -> bool:
        if text.strip() == _ROOT_CAUSE:
            stream.is_root = True
            return False
        entry = _ENTRY.fullmatch(text.rstrip())
        if entry is None:
            return False
        value = entry["value"].strip()
        match entry["name"]:
            case "time":
                stream.at = self._parse_time(value, at)
            case "rank":
                match = _RANK.fullmatch(value)
                stream.rank = None if match is None else int(match["rank"])
            case _:
                return self._record_table_end(stream, at, value)
        return False

    def _record_table_end(self, stream: _Stream, at: float, value: str) -> bool:
        match, number = _EXIT_CODE.match(value), stream.rank
        ended_at = at if stream.at is None else stream.at
        is_root, stream.is_root, stream.rank, stream.at = stream.is_root, False, None, None
        if match is None or number is None:
            return False
        code = int(match["code"])
        if code < -MAX_SIGNAL or code > MAX_EXIT_CODE:
            return False
        after = 0.0 if is_root else _AFTER_ROOT_CAUSE_SECONDS
        return self._record_end(number, ended_at + after, None if code < 0 else code, -code if code < 0 else None)

    def _parse_time(self, text: str, at: float) -> float:
        try:
            timestamp = datetime.strptime(text, _TIME).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return at
        # An impossible time means that the container's time zone is not UTC, or that the line is forged.
        return timestamp if self.world.created_at - 1 <= timestamp <= at + 1 else at

    def _parse_mpirun_line(self, stream: _Stream, at: float, text: str) -> bool:
        by_signal = _BY_SIGNAL.match(text)
        if by_signal is not None:
            number = int(by_signal["signal"])
            return 1 <= number <= MAX_SIGNAL and self._record_end(int(by_signal["rank"]), at, None, number)
        rank_match = _ABORTED.match(text) or _PROCESS.match(text)
        if rank_match is not None:
            stream.rank = int(rank_match["rank"])
            if text.startswith("MPI_ABORT"):
                self._record_line(stream.rank, at, text)
            return False
        code = _ERROR_CODE.match(text) or _CODE.match(text)
        if code is None or stream.rank is None:
            return False
        number, stream.rank = stream.rank, None
        return self._record_end(number, at, int(code["code"]) & MAX_EXIT_CODE, None)

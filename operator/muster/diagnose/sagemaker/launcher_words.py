"""Read the failures of ranks from the output of torchrun and mpirun, for jobs whose ranks don't report.

torchrun prints a table of its node's failed ranks (torch/distributed/elastic/multiprocessing/errors, since 1.9), Open
MPI sentences about the first one. The ranks' last lines precede that, marked with the rank by torch
(`[rank3]: `) or by mpirun (`[1,3]<stderr>:`, which SageMaker's toolkit turns into `[1,mpirank:3,algo-2]<stderr>:`).
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from muster.core.facts import RankFacts
from muster.diagnose.sagemaker.log_lines import MAX_EXIT_CODE, MAX_SIGNAL, World
from muster_worker.contract import log_line
from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS, RankReport, RankState

_MAX_STREAMS = 4096
_AFTER_ROOT_SECONDS = 0.5
"""torchrun reports whole seconds and the first failure: date other failures of that second after it."""

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
    """The unfinished message in a stream's last lines."""

    at: float | None = None
    is_root: bool = False
    rank: int | None = None


@dataclass
class _Rank:
    """`since` is when the rank first appeared in the log (Unix seconds)."""

    since: float
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LAST_LINES))
    end: tuple[float, int | None, int | None] | None = None


@dataclass
class LauncherOutput:
    """Parses the lines of a job's streams. Its memory is bounded by the number of ranks."""

    procs_per_node: int
    world: World
    _ranks: dict[int, _Rank] = field(default_factory=dict)
    _streams: dict[str, _Stream] = field(default_factory=dict)

    def feed(self, stream: str, at: float, text: str) -> bool:
        """Parse a line that arrived at `at` (Unix seconds); return whether it reports a rank's end."""
        if log_line.MARK in text:
            return False
        tagged = _TAGGED.match(text)
        if tagged is not None:
            self._hear(int(tagged["rank"]), at, tagged["text"] if tagged["stream"] == "err" else "")
            # The rank that called MPI_Abort prints its message itself.
            text = tagged["text"]
        else:
            marked = _MARKED.match(text)
            if marked is not None:
                self._hear(int(marked["rank"]), at, marked["text"])
                return False
        state = self._streams.get(stream)
        if state is None:
            state = _Stream()
            if len(self._streams) < _MAX_STREAMS:
                self._streams[stream] = state
        return self._torchrun(state, at, text) or self._mpirun(state, at, text)

    def ranks(self) -> Iterator[RankFacts]:
        """Return every rank that the output mentions."""
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

    def _hear(self, number: int, at: float, text: str) -> _Rank | None:
        if not 0 <= number < self.world.ranks:
            return None
        rank = self._ranks.setdefault(number, _Rank(at))
        if text.strip():
            rank.lines.append(text.rstrip()[:MAX_LINE_CHARS])
        return rank

    def _end(self, number: int, at: float, code: int | None, signal: int | None) -> bool:
        rank = self._hear(number, at, "")
        # The first message about a rank's end has the most precise time.
        if rank is None or rank.end is not None:
            return False
        rank.end = (at, code, signal)
        rank.since = min(rank.since, at)
        return True

    def _torchrun(self, stream: _Stream, at: float, text: str) -> bool:
        if text.strip() == _ROOT_CAUSE:
            stream.is_root = True
            return False
        entry = _ENTRY.fullmatch(text.rstrip())
        if entry is None:
            return False
        value = entry["value"].strip()
        match entry["name"]:
            case "time":
                stream.at = self._time(value, at)
            case "rank":
                match = _RANK.fullmatch(value)
                stream.rank = None if match is None else int(match["rank"])
            case _:
                return self._table_end(stream, at, value)
        return False

    def _table_end(self, stream: _Stream, at: float, value: str) -> bool:
        match, number = _EXIT_CODE.match(value), stream.rank
        ended_at = at if stream.at is None else stream.at
        is_root, stream.is_root, stream.rank, stream.at = stream.is_root, False, None, None
        if match is None or number is None:
            return False
        code = int(match["code"])
        if code < -MAX_SIGNAL or code > MAX_EXIT_CODE:
            return False
        after = 0.0 if is_root else _AFTER_ROOT_SECONDS
        return self._end(number, ended_at + after, None if code < 0 else code, -code if code < 0 else None)

    def _time(self, text: str, at: float) -> float:
        try:
            timestamp = datetime.strptime(text, _TIME).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return at
        # The container's time zone is not UTC, or the line is forged.
        return timestamp if self.world.created_at - 1 <= timestamp <= at + 1 else at

    def _mpirun(self, stream: _Stream, at: float, text: str) -> bool:
        by_signal = _BY_SIGNAL.match(text)
        if by_signal is not None:
            number = int(by_signal["signal"])
            return 1 <= number <= MAX_SIGNAL and self._end(int(by_signal["rank"]), at, None, number)
        named = _ABORTED.match(text) or _PROCESS.match(text)
        if named is not None:
            stream.rank = int(named["rank"])
            if text.startswith("MPI_ABORT"):
                self._hear(stream.rank, at, text)
            return False
        code = _ERROR_CODE.match(text) or _CODE.match(text)
        if code is None or stream.rank is None:
            return False
        number, stream.rank = stream.rank, None
        return self._end(number, at, int(code["code"]) & MAX_EXIT_CODE, None)

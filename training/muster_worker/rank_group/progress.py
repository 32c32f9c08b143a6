"""The agent's reader of a rank's progress file. `progress_file.py` has the file's layout."""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from binascii import crc32
from dataclasses import dataclass, field
from typing import Mapping, Optional, Sequence, Tuple

from muster_worker.agent.state import RaisedError
from muster_worker.contract.error_text import MAX_ERROR_CHARS
from muster_worker.rank import progress_file as layout
from muster_worker.rank_group.activity import describe_traceback
from muster_worker.rank_group.mean_speed import SpeedSamples

READ_ATTEMPTS = 5
"""Maximum number of reads. A read during a write has an invalid checksum, but hardly five times in a row."""

MAX_STEP = 2**63 - 1

MAX_NAME_CHARS = 64
"""Maximum length of a metric's name, as in `user_report.py`."""

MIN_BUSY_TIMES = 8
"""With fewer measurements the busy time is unknown, because the first steps compile code and fill caches."""

MAX_BUSY_SECONDS = 86400.0
"""A step is busy for at most this long: a longer time is forged and does not count."""

MAX_PHASE_SECONDS = 86400.0
"""A phase lasts at most this long, as in `phases.py`: a later end is forged and does not count."""


class NoStepReason:
    """Why a rank has no step count (`RankReport.no_step_reason`)."""

    NOT_PYTHON = "NotPython"  # the command isn't Python, and no child of it was hooked
    PYTHON_ISOLATED = "PythonIsolated"  # started with -I, -E or -S, which ignore PYTHONPATH or load no sitecustomize
    NOT_HOOKED = "NotHooked"  # Python, but too old for the hook, not started yet, or failed at its start
    NO_TORCH = "NoTorch"  # the program has not imported torch
    TORCH_TOO_OLD = "TorchTooOld"  # torch before 2.0 has no hook for optimizer steps


@dataclass(frozen=True)
class UserReport:
    """The valid values that the script reported with `muster_worker.report`."""

    step: Optional[int] = None
    first_step: Optional[int] = None
    advanced_at: Optional[float] = None
    total_steps: Optional[int] = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """The content of a progress file, which a user's process wrote. Times are on the machine's monotonic clock."""

    pid: Optional[int] = None  # of the hooked process; None: no process has claimed the file
    flags: int = 0
    optimizer_steps: int = 0
    optimizer_stepped_at: Optional[float] = None
    stacks_fd: Optional[int] = None  # the descriptor for stack dumps; None: no handler
    optimizer_first_stepped_at: Optional[float] = None
    reported_step: Optional[int] = None
    first_reported_step: Optional[int] = None
    advanced_at: Optional[float] = None  # when the reported step first exceeded the first reported step
    total_steps: Optional[int] = None  # of the whole training, from the script
    reported_at: Optional[float] = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    stopping_calls: int = 0  # of `muster_worker.stopping`
    phase: str = ""  # the name of the last phase without steps
    phase_ends_at: Optional[float] = None  # None: the rank is in no phase
    phase_ended_at: Optional[float] = None
    busy_times: Tuple[float, ...] = ()  # the last measurements of the busy time of a step, seconds, in any order
    error: Optional[RaisedError] = None

    @property
    def busy_seconds(self) -> Optional[float]:
        """The median busy time of a step. A few long steps, for example with a checkpoint, don't change it."""
        times = sorted(seconds for seconds in self.busy_times if seconds <= MAX_BUSY_SECONDS)
        if len(times) < MIN_BUSY_TIMES:
            return None
        # Don't import `statistics`: it imports much, and some Pythons lack it.
        upper_middle = len(times) // 2
        return (times[upper_middle] + times[~upper_middle]) / 2

    def find_phase(self, now: float) -> Optional[str]:
        """Return the phase that the rank is in. Returns None without a phase, or if its end is invalid."""
        if self.phase_ends_at is None or not now < self.phase_ends_at <= now + MAX_PHASE_SECONDS:
            return None
        return self.phase or "phase"

    @property
    def step(self) -> Optional[int]:
        """The step that the user reported, or the count of optimizer steps; None without both."""
        if self.reported_step is not None:
            return self.reported_step
        is_counted = self.optimizer_steps > 0 or bool(self.flags & layout.FLAG_COUNTING)
        return self.optimizer_steps if is_counted else None

    @property
    def stepped_at(self) -> Optional[float]:
        """The time of the last optimizer step or report."""
        times = [at for at in (self.optimizer_stepped_at, self.reported_at) if at is not None]
        return max(times) if times else None

    @property
    def first_stepped_at(self) -> Optional[float]:
        """The time of the first optimizer step, or of the first report of a further step."""
        times = [at for at in (self.optimizer_first_stepped_at, self.advanced_at) if at is not None]
        return min(times) if times else None

    @property
    def is_report_full(self) -> bool:
        """Whether a report was dropped because it was too large."""
        return bool(self.flags & layout.FLAG_REPORT_FULL)


def read(path: str) -> Progress:
    """Read a progress file. Returns an empty `Progress` if the file is missing or invalid."""
    for _ in range(READ_ATTEMPTS):
        try:
            with os.fdopen(open_regular_file(path), "rb") as file:
                data = file.read(layout.SIZE)
        except (OSError, ValueError):  # ValueError: the path has a null byte
            return Progress()
        progress = parse(data)
        if progress is not None:
            return progress
    return Progress()


def open_regular_file(path: str) -> int:
    """Open a rank's file for reading. Raises `OSError` if it is not a regular file.

    The rank could replace the file with a pipe, which would block the agent.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{path} is not a regular file")


def parse(data: bytes) -> Optional[Progress]:
    """Parse a progress file's bytes. Returns None if they were read during a write."""
    if len(data) != layout.SIZE or _read_word(data, layout.WORD_MAGIC) != layout.MAGIC:
        return Progress()
    report = _read_checked(data, layout.WORD_REPORT_CHECK, layout.REPORT_START)
    error = _read_checked(data, layout.WORD_ERROR_CHECK, layout.ERROR_START)
    if report is None or error is None:
        return None
    user_report = _parse_report(report) if report else UserReport()
    flags = _read_word(data, layout.WORD_FLAGS)
    return Progress(
        pid=_read_word(data, layout.WORD_PID) or None,
        flags=flags,
        optimizer_steps=min(_read_word(data, layout.WORD_STEPS), MAX_STEP),
        optimizer_stepped_at=_read_time(data, layout.WORD_STEPPED_AT),
        optimizer_first_stepped_at=_read_time(data, layout.WORD_FIRST_STEPPED_AT),
        stacks_fd=_read_word(data, layout.WORD_STACKS_FD) if flags & layout.FLAG_STACKS else None,
        reported_step=user_report.step,
        first_reported_step=user_report.first_step,
        advanced_at=user_report.advanced_at,
        total_steps=user_report.total_steps,
        reported_at=_read_time(data, layout.WORD_REPORTED_AT),
        metrics=user_report.metrics,
        stopping_calls=min(_read_word(data, layout.WORD_STOPPING_CALLS), MAX_STEP),
        phase=_read_phase_name(data),
        phase_ends_at=_read_time(data, layout.WORD_PHASE_ENDS_AT),
        phase_ended_at=_read_time(data, layout.WORD_PHASE_ENDED_AT),
        busy_times=_read_busy_times(data),
        error=_parse_error(error, _read_time(data, layout.WORD_ERROR_AT), flags),
    )


def add_speed_sample(speed: SpeedSamples, progress: Progress) -> SpeedSamples:
    """Return the samples of the rank's speed with its last step."""
    if not progress.step or progress.stepped_at is None:
        return speed
    return speed.add(progress.step, progress.stepped_at, is_reported=progress.reported_step is not None)


def find_no_step_reason(progress: Progress, command_line: Sequence[str]) -> Optional[str]:
    """Return the reason why `progress` has no step, from the rank's command line; None if it has a step."""
    if progress.step is not None:
        return None
    if progress.pid is None:
        return _find_hook_problem(command_line)
    return NoStepReason.TORCH_TOO_OLD if progress.flags & layout.FLAG_TORCH else NoStepReason.NO_TORCH


def _find_hook_problem(command_line: Sequence[str]) -> str:
    name = command_line[0].rsplit("/", 1)[-1] if command_line else ""
    if not name.startswith(("python", "pypy")):
        return NoStepReason.NOT_PYTHON
    return NoStepReason.PYTHON_ISOLATED if _is_isolated(command_line[1:]) else NoStepReason.NOT_HOOKED


def _is_isolated(arguments: Sequence[str]) -> bool:
    """Whether an option of the interpreter itself (before the script) disables PYTHONPATH or site."""
    expects_value = False
    for argument in arguments:
        if expects_value:
            expects_value = False
        elif not argument.startswith("-") or argument in ("-", "--"):
            return False
        elif not argument.startswith("--"):
            for position, letter in enumerate(argument[1:], 1):
                if letter in "IES":
                    return True
                if letter in "cm":  # the following arguments are for the program
                    return False
                if letter in "WXQ":
                    expects_value = position == len(argument) - 1
                    break
    return False


def _parse_report(report: bytes) -> UserReport:
    # A user's process wrote the report: skip invalid values.
    try:
        document = json.loads(report.decode("utf-8"))
    except (ValueError, RecursionError):
        return UserReport()
    if not isinstance(document, dict):
        return UserReport()
    metrics = document.get("metrics")
    return UserReport(
        step=_parse_step(document.get("step")),
        first_step=_parse_step(document.get("first_step")),
        advanced_at=_parse_time(document.get("advanced_at")),
        total_steps=_parse_step(document.get("total_steps")) or None,
        metrics={
            name: value
            for name, value in (metrics.items() if isinstance(metrics, dict) else ())
            if type(value) is float and math.isfinite(value) and len(name) <= MAX_NAME_CHARS and name.isprintable()
        },
    )


def _parse_error(error: bytes, at: Optional[float], flags: int) -> Optional[RaisedError]:
    text, _, frames = error.decode("utf-8", "replace").partition("\0")
    if not text.strip() or at is None:
        return None
    activity = describe_traceback(frames.split("\n"))
    return RaisedError(text[:MAX_ERROR_CHARS], at, is_uncaught=bool(flags & layout.FLAG_UNCAUGHT), activity=activity)


def _read_phase_name(data: bytes) -> str:
    name = data[layout.PHASE_NAME_START : layout.PHASE_NAME_START + layout.PHASE_NAME_BYTES].rstrip(b"\0")
    text = name.decode("ascii", "replace")
    return text if text.isprintable() else ""


def _read_busy_times(data: bytes) -> Tuple[float, ...]:
    count = min(_read_word(data, layout.WORD_BUSY_COUNT), layout.BUSY_TIMES)
    times = (_read_time(data, layout.WORD_BUSY_TIMES + index) for index in range(count))
    return tuple(seconds for seconds in times if seconds is not None)


def _parse_step(value: object) -> Optional[int]:
    return value if type(value) is int and 0 <= value <= MAX_STEP else None


def _parse_time(value: object) -> Optional[float]:
    return value if type(value) is float and math.isfinite(value) and value > 0 else None


def _read_checked(data: bytes, check_word: int, start: int) -> Optional[bytes]:
    """Return the bytes of which a word has the length and the checksum; None if they don't match it."""
    length, checksum = layout.split_check_word(_read_word(data, check_word))
    content = data[start : start + length]
    return None if len(content) != length or (length and crc32(content) != checksum) else content


def _read_word(data: bytes, word: int) -> int:
    value: int = struct.unpack_from("=Q", data, 8 * word)[0]
    return value


def _read_time(data: bytes, word: int) -> Optional[float]:
    return _parse_time(struct.unpack_from("=d", data, 8 * word)[0])

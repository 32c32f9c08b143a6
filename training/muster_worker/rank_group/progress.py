"""What a rank's progress file says, read by the agent. `progress_file.py` describes the bytes."""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from binascii import crc32
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Sequence, Tuple

from muster_worker.rank import progress_file as layout

READ_ATTEMPTS = 5
"""A reading that meets a writing sees a torn report. Five in a row don't happen to an honest writer."""

MAX_STEP = 2**63 - 1

MAX_NAME_CHARS = 64
"""Of a metric, as in `user.py`."""


class NoStep:
    """Why a rank has no step count (`RankReport.no_step_reason`)."""

    NOT_PYTHON = "NotPython"  # the command isn't Python, and started none that could be hooked
    PYTHON_ISOLATED = "PythonIsolated"  # started with -I, -E or -S: it ignores PYTHONPATH or loads no sitecustomize
    NOT_HOOKED = "NotHooked"  # Python, but too old for the hook, not started so far, or its start failed
    NO_TORCH = "NoTorch"  # torch was never imported
    TORCH_TOO_OLD = "TorchTooOld"  # before 2.0 torch has no hook for optimizer steps


@dataclass(frozen=True)
class Progress:
    """One reading. Times are the machine's monotonic clock, seconds. Nobody vouches for the process that wrote it."""

    pid: Optional[int] = None  # of the hooked process; None: nobody claimed the file
    flags: int = 0
    optimizer_steps: int = 0
    optimizer_stepped_at: Optional[float] = None
    stacks_fd: Optional[int] = None  # where it writes its stacks; None: it doesn't
    reported_step: Optional[int] = None
    reported_at: Optional[float] = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def step(self) -> Optional[int]:
        """The step that the user reported, else the optimizer's count; None when neither is known."""
        if self.reported_step is not None:
            return self.reported_step
        counted = self.optimizer_steps > 0 or bool(self.flags & layout.FLAG_COUNTING)
        return self.optimizer_steps if counted else None

    @property
    def stepped_at(self) -> Optional[float]:
        """When something last moved: an optimizer's step or a report."""
        times = [at for at in (self.optimizer_stepped_at, self.reported_at) if at is not None]
        return max(times) if times else None

    @property
    def report_full(self) -> bool:
        """True when a report was left out because it didn't fit."""
        return bool(self.flags & layout.FLAG_REPORT_FULL)


def read(path: str) -> Progress:
    """Read a progress file. One that is missing, short or not ours reads as unclaimed."""
    for _ in range(READ_ATTEMPTS):
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                data = file.read(layout.SIZE)
        except (OSError, ValueError):  # ValueError: no path at all, with a null in it
            return Progress()
        progress = parse(data)
        if progress is not None:
            return progress
    return Progress()


def open_plain(path: str) -> int:
    """A descriptor to read a rank's file with. Raises `OSError` for what isn't a plain file.

    The rank may put anything in the file's place, and opening or reading a pipe would hold up the agent for ever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{path} is no plain file")


def parse(data: bytes) -> Optional[Progress]:
    """The bytes of a progress file; None when its report was being written."""
    if len(data) != layout.SIZE or _word(data, layout.WORD_MAGIC) != layout.MAGIC:
        return Progress()
    length, checksum = layout.split_check_word(_word(data, layout.WORD_REPORT_CHECK))
    report = data[layout.REPORT_START : layout.REPORT_START + length]
    if len(report) != length or (length and crc32(report) != checksum):
        return None
    step, metrics = _parse_report(report) if report else (None, {})
    flags = _word(data, layout.WORD_FLAGS)
    return Progress(
        pid=_word(data, layout.WORD_PID) or None,
        flags=flags,
        optimizer_steps=min(_word(data, layout.WORD_STEPS), MAX_STEP),
        optimizer_stepped_at=_time(data, layout.WORD_STEPPED_AT),
        stacks_fd=_word(data, layout.WORD_STACKS_FD) if flags & layout.FLAG_STACKS else None,
        reported_step=step,
        reported_at=_time(data, layout.WORD_REPORTED_AT),
        metrics=metrics,
    )


def no_step_reason(progress: Progress, command_line: Sequence[str]) -> Optional[str]:
    """Why `progress` has no step, given the command line of the rank's process; None when it has one."""
    if progress.step is not None:
        return None
    if progress.pid is None:
        return _why_not_hooked(command_line)
    return NoStep.TORCH_TOO_OLD if progress.flags & layout.FLAG_TORCH else NoStep.NO_TORCH


def _why_not_hooked(command_line: Sequence[str]) -> str:
    name = command_line[0].rsplit("/", 1)[-1] if command_line else ""
    if not name.startswith(("python", "pypy")):
        return NoStep.NOT_PYTHON
    return NoStep.PYTHON_ISOLATED if _isolated(command_line[1:]) else NoStep.NOT_HOOKED


def _isolated(arguments: Sequence[str]) -> bool:
    """Whether the interpreter's own options (those before the script) turn PYTHONPATH or site off."""
    takes_value = False
    for argument in arguments:
        if takes_value:
            takes_value = False
        elif not argument.startswith("-") or argument in ("-", "--"):
            return False
        elif not argument.startswith("--"):
            for position, letter in enumerate(argument[1:], 1):
                if letter in "IES":
                    return True
                if letter in "cm":  # all that follows belongs to the program
                    return False
                if letter in "WXQ":
                    takes_value = position == len(argument) - 1
                    break
    return False


def _parse_report(report: bytes) -> Tuple[Optional[int], Dict[str, float]]:
    # written by user.py, but in the user's process: what isn't as it should be is left out
    try:
        document = json.loads(report.decode("utf-8"))
    except (ValueError, RecursionError):
        return None, {}
    if not isinstance(document, dict):
        return None, {}
    step, metrics = document.get("step"), document.get("metrics")
    return (
        step if type(step) is int and 0 <= step <= MAX_STEP else None,
        {
            name: value
            for name, value in (metrics.items() if isinstance(metrics, dict) else ())
            if type(value) is float and math.isfinite(value) and len(name) <= MAX_NAME_CHARS and name.isprintable()
        },
    )


def _word(data: bytes, word: int) -> int:
    value: int = struct.unpack_from("=Q", data, 8 * word)[0]
    return value


def _time(data: bytes, word: int) -> Optional[float]:
    value: float = struct.unpack_from("=d", data, 8 * word)[0]
    return value if math.isfinite(value) and value > 0 else None

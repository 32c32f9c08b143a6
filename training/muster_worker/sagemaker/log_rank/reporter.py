"""Writes a rank's log lines at its start, at intervals, and at its end."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Dict, List, Optional

from muster_worker.agent.trainer_progress import build_trainer_status
from muster_worker.contract import log_line
from muster_worker.contract.log_line import Event, RankLine
from muster_worker.contract.schema import MAX_LAST_LINES, EndReason
from muster_worker.rank_group import activity, memory_limit, progress, stack_dump
from muster_worker.rank_group.mean_speed import SpeedSamples
from muster_worker.sagemaker.log_rank import output_relay
from muster_worker.sagemaker.log_rank.host_rank import RankPosition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.sagemaker.log_rank.trainer_thread import TrainerThread  # only rank 0 has one

FIRST_INTERVAL_SECONDS = 5.0
"""Time until the first progress line. The interval then doubles up to its maximum."""

STALL_SECONDS = 30.0
"""Time without a step after which the reporter takes a stack dump. It takes another one only after a further step."""

CAPTURE_SECONDS = 0.3
"""Time limit for a stack dump, which delays the rank's output."""


class LogReporter:
    """Prints the lines of one rank through `relay`.

    `progress_file` is the rank's, if it has one; `started_at` is the start of its process `pid` in Unix seconds.
    `trainer` has what rank 0 reports with Kubeflow Trainer's protocol.
    """

    def __init__(
        self,
        relay: output_relay.Relay,
        position: RankPosition,
        progress_file: Optional[str],
        pid: int,
        started_at: float,
        *,
        trainer: Optional[TrainerThread] = None,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._relay = relay
        self._progress_file = progress_file
        self._trainer = trainer if position.rank == 0 else None
        self._stall_seconds = stall_seconds
        self._line = RankLine(
            Event.STARTED,
            position.host,
            position.rank,
            position.local_rank,
            position.world,
            at=started_at,
            started_at=started_at,
            pid=pid,
        )
        self._speed = SpeedSamples()
        self._is_started_printed = False
        self._interval = FIRST_INTERVAL_SECONDS
        self._max_interval = log_line.compute_interval(position.world)
        # Spread the lines of a host's ranks over time.
        self._offset = FIRST_INTERVAL_SECONDS * position.local_rank / max(1, position.local_world)
        self._read_oom_count = memory_limit.find_counter()
        self._oom_count = self._read_oom_count() or 0

    def tick(self) -> float:
        """Print a line. Returns the seconds until the next one."""
        if not self._is_started_printed:
            self._is_started_printed = True
            self._relay.print_line(log_line.format_line(self._line))
            return self._interval + self._offset
        self._oom_count = self._read_oom_count() or 0
        self._line = self._add_activity(replace(self._add_progress(), event=Event.PROGRESS))
        self._relay.print_line(log_line.format_line(self._line))
        self._interval = min(self._max_interval, 2 * self._interval)
        return self._interval

    def end(self, status: int, ended_at: float, peak_bytes: int) -> None:
        """Print how the rank ended: its wait status, the time in Unix seconds, and its maximum memory."""
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = None if number is not None else os.WEXITSTATUS(status)
        has_failed = code != 0
        line = replace(
            self._add_progress(), event=Event.ENDED, ended_at=ended_at, exit_code=code, signal=number, pid=None
        )
        if has_failed:
            lines = output_relay.make_printable(
                self._relay.read_last_lines()[-MAX_LAST_LINES:], log_line.MAX_LINE_CHARS
            )
            current = activity.describe_error_text(self._relay.error_text)
            line = self._add_error(replace(line, last_lines=lines, activity=current or line.activity))
        if number is not None:
            line = replace(line, rss_bytes=peak_bytes)
        if number == signal.SIGKILL and (self._read_oom_count() or 0) > self._oom_count:
            line = replace(line, reason=EndReason.OOM_KILLED)
        self._relay.print_last(log_line.format_line(line))

    def _add_progress(self) -> RankLine:
        """Return the line with the current progress and the script's metrics."""
        now, line = time.time(), self._line
        metrics: Dict[str, float] = {}
        if self._trainer is not None:
            trainer_progress, trainer_metrics = self._trainer.read()
            metrics.update(trainer_metrics)
            status = build_trainer_status(trainer_progress, time.monotonic(), max(0.0, now - line.started_at))
            line = replace(line, trainer_status=status)
        if self._progress_file is None:
            return replace(line, at=now, metrics=metrics)
        current = progress.read(self._progress_file)
        self._speed = progress.add_speed_sample(self._speed, current)
        phase_ended_at, stepped_at = current.phase_ended_at, current.stepped_at
        has_stepped = current.step != self._line.step
        return replace(
            line,
            at=now,
            step=current.step,
            stepped_at=_to_wall_time(stepped_at, now),
            first_stepped_at=_to_wall_time(current.first_stepped_at, now),
            phase=current.find_phase(time.monotonic()),
            phase_ended_at=_to_wall_time(phase_ended_at, now),
            no_step_reason=progress.find_no_step_reason(current, _read_command_line(self._line.pid)),
            activity=None if has_stepped else self._line.activity,
            metrics={**metrics, **current.metrics},
            first_script_step=None if current.reported_step is None else current.first_reported_step,
            total_steps=current.total_steps,
            mean_steps_per_second=self._speed.steps_per_second,
        )

    def _add_error(self, line: RankLine) -> RankLine:
        current = progress.Progress() if self._progress_file is None else progress.read(self._progress_file)
        text, at = "", None
        if current.error is not None:
            text, at = current.error.text, current.error.at
        elif current.pid is None:  # the hook would have reported an error that ended its Python
            text = self._relay.find_error()
        (printable,) = output_relay.make_printable([text], log_line.MAX_LINE_CHARS)
        return replace(line, error=printable or None, error_at=_to_wall_time(at, time.time()))

    def _add_activity(self, line: RankLine) -> RankLine:
        is_stalled = line.stepped_at is not None and line.at - line.stepped_at >= self._stall_seconds
        if not is_stalled or line.activity is not None or self._progress_file is None:
            return line
        dump = stack_dump.capture_stack_dumps({line.rank: self._progress_file}, CAPTURE_SECONDS).get(line.rank)
        return replace(line, activity=None if dump is None else activity.describe_dump(dump))


def _to_wall_time(at: Optional[float], now: float) -> Optional[float]:
    """Convert a time on the monotonic clock to Unix seconds. `now` is the current time in Unix seconds."""
    return None if at is None else round(now - max(0.0, time.monotonic() - at), 3)


def _read_command_line(pid: Optional[int]) -> List[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(argument) for argument in file.read().split(b"\0")[:-1]]
    except OSError:
        return []

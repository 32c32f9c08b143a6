"""Account for the job's time: how much of it was productive, and the causes of the lost time.

The status has the sums up to the time `Goodput.at`. Each new status adds the time since then, from the times in the
facts. So a restarted operator continues the sums. muster never writes the status only for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from muster.api.status.goodput import (
    CAUSES,
    FAILURE,
    HANG,
    MAX_DEVICES,
    MAX_SECONDS,
    RANK_DEVICE,
    RECOMPUTATION,
    SPARE,
    START,
    WAITING_FOR_NODE,
    Goodput,
    LostTime,
)
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp
from muster.core.facts import NodeFacts, ProcessState
from muster.core.outcome import DEADLINE_EXCEEDED, Verdict
from muster.core.restarts import PLANNED_RESTARTS
from muster.core.status.attempt_steps import AttemptSteps, find_attempt_steps
from muster.core.status.views import StatusInput
from muster.core.steps.hangs import HUNG
from muster.core.world import count_nodes_with_ranks, get_procs_per_node

PRODUCTIVE: Final = "Productive"

_Period = tuple[str, float | None]
"""A cause, or PRODUCTIVE, and the end of the period (Unix seconds). Skip a period whose end is None."""


@dataclass(frozen=True)
class _Devices:
    """The devices of the attempt's scheduled nodes, and those of the scheduled spares."""

    name: str
    count: int
    spare_count: int = 0


def compute_goodput(status_input: StatusInput) -> Goodput | None:
    """Return the job's goodput, with the time since the previous status; None before a node is scheduled."""
    before, now = status_input.previous.goodput, status_input.now
    is_suspended = status_input.outcome.verdict is Verdict.SUSPENDED
    devices = _find_devices(status_input)
    counted_until = None if before is None else _parse_time(before.at)
    if before is None or counted_until is None:
        if is_suspended or not devices.count:
            return before
        return _begin_accounting(before or Goodput(), devices, now)
    steps = find_attempt_steps(status_input)
    # A clock that was set back must not stop the accounting.
    at = min(counted_until, now)
    seconds, until = _measure_periods(_list_periods(status_input, steps, before), at, now)
    result = _add_seconds(before, seconds)
    return result.model_copy(
        update={
            "device": devices.name if devices.count else before.device,
            "devices": 0 if is_suspended else devices.count,
            "spare_devices": 0 if is_suspended else devices.spare_count,
            "at": None if is_suspended else format_timestamp_milliseconds(until),
            **_find_highest_steps(status_input, steps, before),
        }
    )


def _begin_accounting(before: Goodput, devices: _Devices, now: float) -> Goodput:
    return before.model_copy(
        update={
            "device": devices.name,
            "devices": devices.count,
            "spare_devices": devices.spare_count,
            "recompute_until": before.step,
            "at": format_timestamp_milliseconds(now),
        }
    )


def _parse_time(text: str | None) -> float | None:
    try:
        return None if text is None else parse_timestamp(text)
    except ValueError:  # a user has edited the time
        return None


def _find_devices(status_input: StatusInput) -> _Devices:
    """Return the devices on the scheduled nodes. If a node has no devices, the ranks count as devices."""
    job = status_input.job
    scheduled_nodes = [node for node in status_input.facts.nodes[: count_nodes_with_ranks(job)] if _holds_devices(node)]
    requested = [node.process.devices for node in scheduled_nodes if node.process.devices is not None]
    names = {devices.name for devices in requested}
    spares = [node for node in status_input.facts.non_members if _holds_devices(node)] if job.spec.spares else []
    if len(requested) == len(scheduled_nodes) and len(names) == 1:
        # The pods of spares are equal to the others.
        count, per_node = sum(devices.count for devices in requested), requested[0].count
        return _Devices(names.pop(), min(MAX_DEVICES, count), min(MAX_DEVICES, len(spares) * per_node))
    procs = get_procs_per_node(job)
    return _Devices(RANK_DEVICE, min(MAX_DEVICES, len(scheduled_nodes) * procs), min(MAX_DEVICES, len(spares) * procs))


def _holds_devices(node: NodeFacts) -> bool:
    return node.is_scheduled and node.process.state is not ProcessState.EXITED


def _list_periods(status_input: StatusInput, steps: AttemptSteps, before: Goodput) -> Iterator[_Period]:
    """Yield the periods up to now, in order. A later status accounts for the time after the last period."""
    outcome, previous, now = status_input.outcome, status_input.previous, status_input.now
    last = previous.last_restart
    start = START if last is None or last.reason in PLANNED_RESTARTS else FAILURE
    if not outcome.has_started:
        scheduled = previous.find_condition("Scheduled")
        is_waiting = scheduled is not None and scheduled.status == "False"
        yield (WAITING_FOR_NODE if is_waiting else start), now
        return
    if steps.first_step_at is not None:
        yield start, steps.first_step_at
        yield RECOMPUTATION, steps.find_catch_up_time(before.recompute_until)
        yield PRODUCTIVE, steps.last_step_at
    else:
        # The time after the start of the ranks has an unknown cause until the first step or the end.
        yield start, now if steps.running_since is None and not outcome.is_decided else steps.running_since
    if outcome.is_decided:
        yield from _list_periods_at_end(status_input, steps, start)


def _list_periods_at_end(status_input: StatusInput, steps: AttemptSteps, start: str) -> Iterator[_Period]:
    """Yield the periods since the last step, or since the start of the ranks if there was no step."""
    outcome, now = status_input.outcome, status_input.now
    if outcome.is_restart_requested:
        # A user may request a restart because the ranks hang.
        yield (START if status_input.previous.hang is None else HANG), now
        return
    has_failed = outcome.verdict in (Verdict.FAILED, Verdict.RESTARTING) and outcome.reason != DEADLINE_EXCEEDED
    # A script without steps may be productive, because it trains with another library or without an optimizer.
    if steps.first_step_at is None and (outcome.verdict is Verdict.SUCCEEDED or not steps.can_count):
        yield PRODUCTIVE, outcome.at if has_failed else now
    if status_input.previous.hang is not None or outcome.reason == HUNG:
        yield HANG, outcome.at if has_failed else now
    if has_failed:
        yield FAILURE, now
    else:
        yield (start if steps.first_step_at is None else PRODUCTIVE), now


def _measure_periods(periods: Iterator[_Period], at: float, now: float) -> tuple[dict[str, float], float]:
    """Return the seconds after `at` by cause, and the end of the last period."""
    seconds: dict[str, float] = {}
    for cause, period_end in periods:
        until = at if period_end is None else min(max(at, period_end), now)
        seconds[cause] = seconds.get(cause, 0.0) + until - at
        at = until
    return seconds, at


def _add_seconds(before: Goodput, seconds: dict[str, float]) -> Goodput:
    """Add the seconds by cause to the sums."""
    lost = {entry.cause: entry for entry in before.lost}
    causes = [cause for cause in CAUSES if cause in lost or seconds.get(cause) or cause == SPARE]
    sums = [
        _add_lost_time(lost.get(cause) or LostTime(cause=cause, seconds=0, device_seconds=0), seconds, before.devices)
        for cause in causes
    ]
    productive = seconds.get(PRODUCTIVE, 0.0)
    productive_seconds = _sum_seconds(before.productive_seconds, productive)
    sums = [_add_spare_time(entry, before, sum(seconds.values())) if entry.cause == SPARE else entry for entry in sums]
    total = _sum_seconds(productive_seconds, *(entry.seconds for entry in sums))
    return before.model_copy(
        update={
            "ratio": round(min(1.0, productive_seconds / total), 4) if total else None,
            "productive_seconds": productive_seconds,
            "total_seconds": total,
            "productive_device_seconds": _sum_seconds(before.productive_device_seconds, productive * before.devices),
            "lost": tuple(entry for entry in sums if entry.seconds or (entry.cause == SPARE and entry.device_seconds)),
        }
    )


def _add_lost_time(before: LostTime, seconds: dict[str, float], devices: int) -> LostTime:
    added = seconds.get(before.cause, 0.0)
    return LostTime(
        cause=before.cause,
        seconds=_sum_seconds(before.seconds, added),
        device_seconds=_sum_seconds(before.device_seconds, added * devices),
    )


def _add_spare_time(lost: LostTime, before: Goodput, seconds: float) -> LostTime:
    """Add the device-seconds of the spares. Spares occupy devices, but cost the job no time."""
    return lost.model_copy(update={"device_seconds": _sum_seconds(lost.device_seconds, seconds * before.spare_devices)})


def _sum_seconds(*values: float) -> float:
    return round(min(MAX_SECONDS, sum(values)), 3)


def _find_highest_steps(status_input: StatusInput, steps: AttemptSteps, before: Goodput) -> dict[str, int | None]:
    """Return the highest step of all attempts, and the highest step of the earlier attempts."""
    has_started = status_input.outcome.has_started
    reached = [step for step in (before.step, steps.script_step if has_started else None) if step is not None]
    highest_step = max(reached, default=None)
    return {"step": highest_step, "recompute_until": before.recompute_until if has_started else highest_step}

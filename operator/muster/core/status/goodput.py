"""Account for the job's time: which of it was productive, and what the rest was lost to.

The status has the sums up to a time, `Goodput.at`. Each new status adds what happened since then, by the times in the
facts. So the sums survive the operator, and need no write of their own.
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
    RECOMPUTATION,
    SPARE,
    START,
    WAITING_FOR_NODE,
    Goodput,
    LostTime,
)
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp
from muster.core.facts import NodeFacts, ProcessState
from muster.core.hangs import HUNG
from muster.core.outcome import DEADLINE_EXCEEDED, Verdict
from muster.core.restarts import PLANNED_RESTARTS
from muster.core.status.attempt_steps import AttemptSteps, find_attempt_steps
from muster.core.status.views import StatusInput
from muster.core.world import count_rank_nodes, get_procs_per_node

PRODUCTIVE: Final = "Productive"

RANK: Final = "rank"
"""The device of a job whose pods request none."""

_Period = tuple[str, float | None]
"""A cause, or PRODUCTIVE, and the time until which it lasted (Unix seconds); None: unknown, so skip it."""


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
    result = _add(before, seconds)
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
    """Return the devices on the scheduled nodes. The ranks count as devices unless each of the nodes has some."""
    job = status_input.job
    held = [node for node in status_input.facts.nodes[: count_rank_nodes(job)] if _holds_devices(node)]
    requested = [node.process.devices for node in held if node.process.devices is not None]
    names = {devices.name for devices in requested}
    spares = [node for node in status_input.facts.non_members if _holds_devices(node)] if job.spec.spares else []
    if len(requested) == len(held) and len(names) == 1:
        # The pods of spares are equal to the others.
        count, per_node = sum(devices.count for devices in requested), requested[0].count
        return _Devices(names.pop(), min(MAX_DEVICES, count), min(MAX_DEVICES, len(spares) * per_node))
    procs = get_procs_per_node(job)
    return _Devices(RANK, min(MAX_DEVICES, len(held) * procs), min(MAX_DEVICES, len(spares) * procs))


def _holds_devices(node: NodeFacts) -> bool:
    return node.is_scheduled and node.process.state is not ProcessState.EXITED


def _list_periods(status_input: StatusInput, steps: AttemptSteps, before: Goodput) -> Iterator[_Period]:
    """Yield what happened up to now, in order. The time after the last period is not accounted for yet."""
    outcome, previous, now = status_input.outcome, status_input.previous, status_input.now
    last = previous.last_restart
    start = START if last is None or last.reason in PLANNED_RESTARTS else FAILURE
    if not outcome.has_started:
        scheduled = previous.find_condition("Scheduled")
        is_waiting = scheduled is not None and scheduled.status == "False"
        yield (WAITING_FOR_NODE if is_waiting else start), now
        return
    if steps.first_at is not None:
        yield start, steps.first_at
        yield RECOMPUTATION, steps.caught_up_at(before.recompute_until)
        yield PRODUCTIVE, steps.last_at
    else:
        # Until the first step or the end it is unknown what the ranks do after their start.
        yield start, now if steps.running_since is None and not outcome.is_decided else steps.running_since
    if outcome.is_decided:
        yield from _list_periods_at_end(status_input, steps, start)


def _list_periods_at_end(status_input: StatusInput, steps: AttemptSteps, start: str) -> Iterator[_Period]:
    """Yield what the time since the last step was, or since the start of the ranks in an attempt without steps."""
    outcome, now = status_input.outcome, status_input.now
    if outcome.is_restart_requested:
        # A user may request it because the ranks hang.
        yield (START if status_input.previous.hang is None else HANG), now
        return
    has_failed = outcome.verdict in (Verdict.FAILED, Verdict.RESTARTING) and outcome.reason != DEADLINE_EXCEEDED
    # A script without a step may work nevertheless: it trains with another library, or without an optimizer.
    if steps.first_at is None and (outcome.verdict is Verdict.SUCCEEDED or not steps.can_count):
        yield PRODUCTIVE, outcome.at if has_failed else now
    if status_input.previous.hang is not None or outcome.reason == HUNG:
        yield HANG, outcome.at if has_failed else now
    if has_failed:
        yield FAILURE, now
    else:
        yield (start if steps.first_at is None else PRODUCTIVE), now


def _measure_periods(periods: Iterator[_Period], at: float, now: float) -> tuple[dict[str, float], float]:
    """Return the seconds after `at` by cause, and the end of the last period."""
    seconds: dict[str, float] = {}
    for cause, period_end in periods:
        until = at if period_end is None else min(max(at, period_end), now)
        seconds[cause] = seconds.get(cause, 0.0) + until - at
        at = until
    return seconds, at


def _add(before: Goodput, seconds: dict[str, float]) -> Goodput:
    """Add the seconds by cause to the sums."""
    lost = {entry.cause: entry for entry in before.lost}
    causes = [cause for cause in CAUSES if cause in lost or seconds.get(cause) or cause == SPARE]
    sums = [
        _add_lost(lost.get(cause) or LostTime(cause=cause, seconds=0, device_seconds=0), seconds, before.devices)
        for cause in causes
    ]
    productive = seconds.get(PRODUCTIVE, 0.0)
    productive_seconds = _sum(before.productive_seconds, productive)
    sums = [_add_spares(entry, before, sum(seconds.values())) if entry.cause == SPARE else entry for entry in sums]
    total = _sum(productive_seconds, *(entry.seconds for entry in sums))
    return before.model_copy(
        update={
            "ratio": round(min(1.0, productive_seconds / total), 4) if total else None,
            "productive_seconds": productive_seconds,
            "total_seconds": total,
            "productive_device_seconds": _sum(before.productive_device_seconds, productive * before.devices),
            "lost": tuple(entry for entry in sums if entry.seconds or (entry.cause == SPARE and entry.device_seconds)),
        }
    )


def _add_lost(before: LostTime, seconds: dict[str, float], devices: int) -> LostTime:
    added = seconds.get(before.cause, 0.0)
    return LostTime(
        cause=before.cause,
        seconds=_sum(before.seconds, added),
        device_seconds=_sum(before.device_seconds, added * devices),
    )


def _add_spares(lost: LostTime, before: Goodput, seconds: float) -> LostTime:
    """Add the devices that the spares held. The job itself lost no time to them."""
    return lost.model_copy(update={"device_seconds": _sum(lost.device_seconds, seconds * before.spare_devices)})


def _sum(*values: float) -> float:
    return round(min(MAX_SECONDS, sum(values)), 3)


def _find_highest_steps(status_input: StatusInput, steps: AttemptSteps, before: Goodput) -> dict[str, int | None]:
    """Return the furthest step of all attempts, and that of the attempts before the current one."""
    has_started = status_input.outcome.has_started
    reached = [step for step in (before.step, steps.script_step if has_started else None) if step is not None]
    furthest = max(reached, default=None)
    return {"step": furthest, "recompute_until": before.recompute_until if has_started else furthest}

"""The state of all ranks at one time as columns of integers, for the page of `muster board`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.status.status import Status
from muster.cli.board.metric_curves import MetricCurve, MetricCurves
from muster.cli.board.time_line import TimeLine, build_time_line
from muster.cli.board.view import (
    View,
    find_slowest_behind,
    get_rank_reports,
    make_rank_rows,
    read_members,
    read_rank_steps,
    read_state_ranges,
    read_world,
)

STATES = ("Unknown", "Pending", "Starting", "Running", "Succeeded", "Failed", "Stopped")
"""A rank's state in a column is its index in this list, which the page has too (static/states.js)."""

UNKNOWN = -1
"""The number in a column for a rank without this value."""

_CODES = {state: code for code, state in enumerate(STATES)}


@dataclass(frozen=True)
class RankColumns:
    """A number for each rank, in the order of the ranks. UNKNOWN stands for a missing number.

    `states` are indexes of STATES. `steps_behind` is how many steps a rank is behind the fastest one.
    `step_microseconds` is the median time of a step without waiting for other ranks, with two significant digits.
    """

    states: tuple[int, ...] = ()
    steps_behind: tuple[int, ...] = ()
    step_microseconds: tuple[int, ...] = ()


@dataclass(frozen=True)
class RankProblem:
    """A rank with a problem. `end` is how it ended, such as "exit 1" or "signal 9"; empty if it runs."""

    rank: int
    state: str
    end: str
    message: str


@dataclass(frozen=True)
class Frame:
    """The job `name` at the time `at` in Unix seconds, `elapsed_seconds` after its begin.

    `members` are the nodes in the order of their node ranks; empty if each node rank is the node of the same number.
    `step` is the number of steps that every running rank has completed.
    """

    name: str
    phase: str
    message: str
    elapsed_seconds: int
    attempt: int
    procs_per_node: int
    columns: RankColumns
    at: int = 0
    members: tuple[int, ...] = ()
    step: int | None = None
    percent: int | None = None
    notice: str = ""
    problems: tuple[RankProblem, ...] = ()
    time_line: TimeLine = field(default_factory=TimeLine)
    curves: tuple[MetricCurve, ...] = ()

    @property
    def world(self) -> int:
        """The number of ranks."""
        return len(self.columns.states)


def build_frame(view: View, at: float, curves: MetricCurves | None = None) -> Frame:
    """Return the view at the time `at` (Unix seconds) as a frame, with the curves of the metrics until then."""
    status = view.status
    columns = _build_status_columns(status) if view.facts is None else _build_columns(view)
    return Frame(
        name=view.name,
        phase=status.phase,
        message=status.message,
        at=int(at),
        elapsed_seconds=int(view.elapsed_seconds),
        attempt=status.attempt,
        procs_per_node=view.procs_per_node,
        columns=columns,
        members=tuple(read_members(status)),
        step=status.progress.step if status.progress is not None else None,
        percent=status.progress.percent if status.progress is not None else None,
        notice=view.notice,
        problems=_list_problems(status),
        time_line=build_time_line(status),
        curves=curves.curves if curves is not None else (),
    )


def _build_columns(view: View) -> RankColumns:
    rows = make_rank_rows(view)
    reports = get_rank_reports(view.facts)
    seconds = {rank: report.busy_seconds for rank, report in reports.items() if report.busy_seconds is not None}
    return RankColumns(
        states=tuple(_CODES.get(row.state, 0) for row in rows),
        steps_behind=tuple(UNKNOWN if row.step is None else row.behind or 0 for row in rows),
        step_microseconds=tuple(_round_microseconds(seconds.get(row.rank)) for row in rows),
    )


def _build_status_columns(status: Status) -> RankColumns:
    """Return what a status says: for each rank a state, but steps and times only of the slowest ranks.

    It has an object for each range and not for each rank, because one process may show many large jobs.
    """
    world = read_world(status)
    states, behind, microseconds = [0] * world, [UNKNOWN] * world, [UNKNOWN] * world
    for ranks, state in read_state_ranges(status):
        shown = ranks[: max(0, world - ranks.start)]
        states[shown.start : shown.stop] = [_CODES.get(state, 0)] * len(shown)
    steps = read_rank_steps(status)
    late = find_slowest_behind(status, steps)
    # All ranks at step 0: the training does not use torch optimizers.
    for rank in steps if any(steps.values()) else ():
        if rank < world and steps[rank] is not None:
            behind[rank] = late.get(rank, 0)
    for entry in status.stragglers.slowest if status.stragglers is not None else ():
        if 0 <= entry.rank < world:
            microseconds[entry.rank] = _round_microseconds(entry.busy_seconds)
    return RankColumns(tuple(states), tuple(behind), tuple(microseconds))


def _round_microseconds(seconds: float | None) -> int:
    # Two digits are enough for a colour, and a number that rarely changes is rarely sent.
    return UNKNOWN if seconds is None else int(float(f"{seconds * 1e6:.1e}"))


def _list_problems(status: Status) -> tuple[RankProblem, ...]:
    details = status.ranks.details if status.ranks is not None else ()
    result = []
    for detail in details:
        end = f"signal {detail.signal}" if detail.signal is not None else ""
        end = f"exit {detail.exit_code}" if detail.exit_code is not None else end
        result.append(RankProblem(detail.rank, detail.state, end, detail.message or detail.reason))
    return tuple(result)

"""Frames: the columns of a view, and frames as JSON."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.status.progress import Progress
from muster.api.status.rules import MAX_RANKS
from muster.api.status.status import RankDetail, RankStatus, StateRange, Status, StepRange
from muster.api.status.stragglers import SlowRank, StragglerRecord
from muster.cli.board.frame import STATES, UNKNOWN, Frame, RankColumns, RankProblem, build_frame
from muster.cli.board.frame_json import decode_frame, encode_changes, encode_frame
from muster.cli.board.metric_curves import MetricCurve
from muster.cli.board.time_line import EndedAttempt, LostSeconds, TimeLine
from muster.cli.board.view import View, make_rank_rows

KILLED = RankDetail(rank=2, node=1, state="Failed", signal=9, reason="Killed", message="Traceback")
EXITED = RankDetail(rank=3, node=1, state="Failed", exit_code=3, reason="Error")
STRAGGLERS = StragglerRecord(
    attempt=1,
    count=1,
    ranks="1",
    median_seconds=0.1,
    slowest=(SlowRank(rank=1, node=0, busy_seconds=0.2468),),
    message="Rank 1 is slow",
    since="2026-11-28T05:00:00Z",
)


def make_status(**fields: object) -> Status:
    by_state = (StateRange(state="Running", count=2, ranks="0-1"), StateRange(state="Failed", count=2, ranks="2-3"))
    ranks = RankStatus(
        world=4,
        running=2,
        ready="2/4",
        by_state=by_state,
        by_step=(StepRange(step=7, ranks="0-1"),),
        details=(KILLED, EXITED),
    )
    return Status(phase="Running", ranks=ranks, attempt=1).model_copy(update=fields)


def test_a_frame_has_a_number_for_each_rank() -> None:
    frame = build_frame(View("digits", 2, make_status(stragglers=STRAGGLERS), 72.9), 1000.5)

    assert [STATES[code] for code in frame.columns.states] == ["Running", "Running", "Failed", "Failed"]
    assert frame.columns.steps_behind == (0, 0, UNKNOWN, UNKNOWN)
    assert frame.columns.step_microseconds == (UNKNOWN, 250_000, UNKNOWN, UNKNOWN)
    assert (frame.world, frame.at, frame.elapsed_seconds) == (4, 1000, 72)


def test_a_frame_says_how_ranks_ended() -> None:
    assert build_frame(View("digits", 2, make_status(), 0.0), 0.0).problems == (
        RankProblem(2, "Failed", "signal 9", "Traceback"),
        RankProblem(3, "Failed", "exit 3", "Error"),
    )


@pytest.mark.parametrize(
    "status",
    [
        make_status(stragglers=STRAGGLERS),
        Status(),
        make_status().model_copy(update={"progress": Progress(step=5, slowest_rank=1)}),
        Status(ranks=RankStatus(world=3, running=0, ready="", by_step=(StepRange(step=0, ranks="0-2"),))),
        Status(
            ranks=RankStatus(
                world=2, running=0, ready="", by_state=(StateRange(state="Running", count=9, ranks="1-9,x"),)
            )
        ),
        Status(
            progress=Progress(slowest_rank=1),
            ranks=RankStatus(
                world=3, running=0, ready="", by_step=(StepRange(step=7, ranks="0,2-8"), StepRange(step=3, ranks="1"))
            ),
        ),
    ],
)
def test_the_columns_of_a_status_are_those_of_the_text_board(status: Status) -> None:
    view = View("digits", 2, status, 0.0)
    columns, rows = build_frame(view, 0.0).columns, make_rank_rows(view)
    assert [STATES[code] for code in columns.states] == [row.state for row in rows]
    assert list(columns.steps_behind) == [UNKNOWN if row.step is None else row.behind or 0 for row in rows]


def test_ranges_with_billions_of_ranks_take_no_time() -> None:
    ranks = ",".join(["0-9999999"] * 10_000)
    by_state = (StateRange(state="Running", count=1, ranks="0"), StateRange(state="Failed", count=1, ranks=ranks))
    status = Status(
        ranks=RankStatus(world=1, running=0, ready="", by_state=by_state, by_step=(StepRange(step=1, ranks=ranks),))
    )
    assert build_frame(View("digits", 1, status, 0.0), 0.0).columns.states == (STATES.index("Running"),)


def test_a_job_without_ranks_has_an_empty_frame() -> None:
    frame = build_frame(View("digits", 2, Status(), 0.0), 0.0)
    assert frame.world == 0
    assert decode_frame(encode_frame(frame)) == frame


def make_frame(states: tuple[int, ...], **fields: object) -> Frame:
    columns = RankColumns(states, tuple(state - 1 for state in states), tuple(10 * state for state in states))
    return replace(Frame("digits", "Running", "", 1, 1, 2, columns), **fields)  # type: ignore[arg-type]


STATE_LISTS = st.lists(st.integers(0, 2), max_size=12).map(tuple)


@given(STATE_LISTS)
def test_a_frame_is_the_same_after_json(states: tuple[int, ...]) -> None:
    frame = make_frame(
        states,
        at=17,
        members=(0, 2),
        step=3,
        problems=(RankProblem(1, "Failed", "exit 1", "no"),),
        time_line=TimeLine(
            (EndedAttempt(1, 16.5, "RankKilled", "Rank 1", None),), 2.5, 4.5, (LostSeconds("start", 2.0),)
        ),
        curves=(MetricCurve("loss", (0.5, 1.5), (2.0, 1.25)),),
    )
    assert decode_frame(json.loads(json.dumps(encode_frame(frame)))) == frame


@given(
    st.integers(0, 12).flatmap(
        lambda count: st.tuples(*[st.lists(st.integers(0, 2), min_size=count, max_size=count)] * 2)
    )
)
def test_changes_make_the_old_frame_the_new_one(lists: tuple[list[int], list[int]]) -> None:
    old, new = (make_frame(tuple(states)) for states in lists)
    changes = encode_changes(old, new)

    column = list(old.columns.states)
    runs = changes["columns"]["states"]  # type: ignore[index, call-overload]
    for first, count, state in zip(runs[::3], runs[1::3], runs[2::3], strict=True):  # type: ignore[index, arg-type]
        column[first : first + count] = [state] * count
    assert tuple(column) == new.columns.states
    assert changes["isFull"] is False


def test_only_changed_ranks_are_sent() -> None:
    old, new = make_frame((3,) * 100_000), make_frame((3,) * 70_000 + (5,) + (3,) * 29_999)
    columns = encode_changes(old, new)["columns"]
    assert columns == {"states": [70_000, 1, 5], "stepsBehind": [70_000, 1, 4], "stepMicroseconds": [70_000, 1, 50]}


def test_curves_are_sent_only_when_they_have_changed() -> None:
    old = make_frame((3,), curves=(MetricCurve("loss", (0.5,), (2.0,)),))
    new = replace(old, curves=(MetricCurve("loss", (0.5, 1.0), (2.0, 1.0)),))
    assert "curves" not in encode_changes(old, replace(old, message="other"))
    assert encode_changes(old, new)["curves"] == [{"name": "loss", "seconds": [0.5, 1.0], "values": [2.0, 1.0]}]


@pytest.mark.parametrize(
    "other",
    [make_frame((3, 3)), make_frame((3,) * 4, attempt=2), make_frame((3,) * 4, members=(0, 2))],
    ids=["world", "attempt", "members"],
)
def test_other_ranks_are_sent_whole(other: Frame) -> None:
    assert encode_changes(make_frame((3,) * 4), other) == encode_frame(other)


def test_runs_of_more_ranks_than_the_job_has_are_not_read() -> None:
    frame = decode_frame({"world": 3, "columns": {"states": [0, 2, 3, 0, 3, 4, 0, 3, 5]}})
    assert frame.columns.states == (4, 3, 0)


@pytest.mark.parametrize(
    ("fields", "world"),
    [
        ([], 0),
        ({"world": "many"}, 0),
        ({"world": -1}, 0),
        ({"world": MAX_RANKS + 1}, MAX_RANKS),
        ({"world": 2, "columns": {"states": [-1, 2, 5, 0, 9, 3, "x", 1]}}, 2),
        ({"world": 2, "procsPerNode": 0, "problems": [1, {"rank": "x"}]}, 2),
        ({"timeLine": 1, "curves": [{"name": "loss", "seconds": [1], "values": []}]}, 0),
    ],
)
def test_a_damaged_file_is_read_as_far_as_possible(fields: object, world: int) -> None:
    frame = decode_frame(fields)  # type: ignore[arg-type]
    assert frame.world == world
    assert frame.procs_per_node == 1

"""Frames as JSON: whole, or only the ranks that have changed. Pure.

A column is a flat list of runs: the first rank, the number of ranks, and the number of each of them, again and again.
So 100,000 ranks in the same state are three integers, and so is the change of one rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from muster.api.document import JSON
from muster.api.json_fields import read_integer, read_mapping, read_mappings, read_string
from muster.api.status.rules import MAX_RANKS
from muster.cli.board.frame import UNKNOWN, Frame, RankColumns, RankProblem
from muster.cli.board.history_json import decode_curves, decode_time_line, encode_curves, encode_time_line

_RUN = 3
"""The integers of a run."""

_BLOCK = 256
"""The ranks that are compared at once."""


def encode_frame(frame: Frame) -> dict[str, JSON]:
    """Return the whole frame."""
    return _encode(frame, RankColumns(), is_full=True)


def encode_changes(previous: Frame, frame: Frame) -> dict[str, JSON]:
    """Return the ranks that differ from `previous`, and the fields of the job; or the whole frame for other ranks."""
    if _get_layout(previous) != _get_layout(frame):
        return encode_frame(frame)
    changes = _encode(frame, previous.columns, is_full=False)
    if frame.curves == previous.curves:
        del changes["curves"]
    return changes


def _get_layout(frame: Frame) -> tuple[int, int, int, tuple[int, ...]]:
    return (frame.world, frame.attempt, frame.procs_per_node, frame.members)


def _encode(frame: Frame, previous: RankColumns, *, is_full: bool) -> dict[str, JSON]:
    new = frame.columns
    columns: dict[str, JSON] = {
        "states": _encode_runs(previous.states, new.states),
        "stepsBehind": _encode_runs(previous.steps_behind, new.steps_behind),
        "stepMicroseconds": _encode_runs(previous.step_microseconds, new.step_microseconds),
    }
    return {**_encode_head(frame), "isFull": is_full, "columns": columns}


def _encode_head(frame: Frame) -> dict[str, JSON]:
    return {
        "name": frame.name,
        "phase": frame.phase,
        "message": frame.message,
        "at": frame.at,
        "elapsedSeconds": frame.elapsed_seconds,
        "attempt": frame.attempt,
        "world": frame.world,
        "procsPerNode": frame.procs_per_node,
        "members": list(frame.members),
        "step": frame.step,
        "percent": frame.percent,
        "notice": frame.notice,
        "problems": [
            {"rank": entry.rank, "state": entry.state, "end": entry.end, "message": entry.message}
            for entry in frame.problems
        ],
        "timeLine": encode_time_line(frame.time_line),
        "curves": encode_curves(frame.curves),
    }


def _encode_runs(previous: Sequence[int], column: Sequence[int]) -> list[JSON]:
    """Return the runs of the ranks whose number is not the one in `previous`; if that is empty, of all ranks."""
    if not previous:
        return _encode_column(column)
    runs: list[JSON] = []
    first, end, number = 0, 0, UNKNOWN
    for rank in _list_changes(previous, column):
        if rank != end or column[rank] != number:
            if end > first:
                runs += (first, end - first, number)
            first, number = rank, column[rank]
        end = rank + 1
    if end > first:
        runs += (first, end - first, number)
    return runs


def _encode_column(column: Sequence[int]) -> list[JSON]:
    runs: list[JSON] = []
    first = 0
    for number, group in groupby(column):
        count = len(list(group))
        runs += (first, count, number)
        first += count
    return runs


def _list_changes(previous: Sequence[int], column: Sequence[int]) -> Iterator[int]:
    """Yield the ranks that differ. Python compares whole blocks fifty times as fast as their ranks."""
    if previous is column:
        return
    for first in range(0, len(column), _BLOCK):
        old, new = previous[first : first + _BLOCK], column[first : first + _BLOCK]
        if old != new:
            yield from [first + at for at, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]


def decode_frame(value: JSON) -> Frame:
    """Return a whole frame. Fields that are missing or have another type get their defaults."""
    fields = read_mapping(value)
    columns = read_mapping(fields.get("columns"))
    world = min(max(read_integer(fields.get("world")) or 0, 0), MAX_RANKS)
    return Frame(
        name=read_string(fields.get("name")),
        phase=read_string(fields.get("phase")),
        message=read_string(fields.get("message")),
        at=read_integer(fields.get("at")) or 0,
        elapsed_seconds=read_integer(fields.get("elapsedSeconds")) or 0,
        attempt=read_integer(fields.get("attempt")) or 0,
        procs_per_node=max(read_integer(fields.get("procsPerNode")) or 1, 1),
        columns=RankColumns(
            states=_decode_runs(columns.get("states"), world, 0),
            steps_behind=_decode_runs(columns.get("stepsBehind"), world, UNKNOWN),
            step_microseconds=_decode_runs(columns.get("stepMicroseconds"), world, UNKNOWN),
        ),
        members=tuple(_read_integers(fields.get("members"))),
        step=read_integer(fields.get("step")),
        percent=read_integer(fields.get("percent")),
        notice=read_string(fields.get("notice")),
        problems=tuple(_decode_problem(entry) for entry in read_mappings(fields.get("problems"))),
        time_line=decode_time_line(fields.get("timeLine")),
        curves=decode_curves(fields.get("curves")),
    )


def _decode_problem(fields: Mapping[str, JSON]) -> RankProblem:
    return RankProblem(
        rank=read_integer(fields.get("rank")) or 0,
        state=read_string(fields.get("state")),
        end=read_string(fields.get("end")),
        message=read_string(fields.get("message")),
    )


def _decode_runs(value: JSON, world: int, default: int) -> tuple[int, ...]:
    column, left = [default] * world, world
    numbers = _read_integers(value)
    for first, count, number in zip(numbers[::_RUN], numbers[1::_RUN], numbers[2::_RUN], strict=False):
        # Runs of a frame don't overlap. So those of a damaged file cost no more than its ranks.
        end = min(first + count, first + left, world)
        if 0 <= first < end:
            left -= end - first
            column[first:end] = [number] * (end - first)
    return tuple(column)


def _read_integers(value: JSON) -> Sequence[int]:
    """Return the integers in a list."""
    return (
        [item for item in value if isinstance(item, int) and not isinstance(item, bool)]
        if isinstance(value, list)
        else []
    )

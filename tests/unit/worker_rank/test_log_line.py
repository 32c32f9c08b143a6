"""The lines that ranks print if there is only a log."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract import log_line
from muster_worker.contract.log_line import Event, RankLine

LINE = RankLine(Event.STARTED, "algo-2", 3, 1, 4, at=10.5, started_at=10.0, pid=77)

# The words that sagemaker-training 5.1.4 uses as the reason of a failure (`_PYTHON_ERRORS_` and `_MPI_ERRORS_`,
# shortened), and texts that a metric's regular expression may match.
TAKEN_FOR_A_REASON = re.compile(r"[A-Z]\w*Error|Exception|Invalid requirement|mpirun\.real|ORTE|torch_xla/|loss=")

PRINTABLE = st.characters(exclude_categories=["C"])

words = st.text(PRINTABLE, max_size=400)
lines = st.builds(
    RankLine,
    event=st.sampled_from(Event.ALL),
    host=st.text("algo-0123456789", max_size=63),
    rank=st.integers(0, 10**6),
    local_rank=st.integers(0, 127),
    world=st.integers(1, 10**6),
    at=st.floats(0, 2e9),
    started_at=st.floats(0, 2e9),
    exit_code=st.none() | st.integers(0, 255),
    last_lines=st.lists(words, max_size=8).map(tuple),
    activity=st.none() | st.text(PRINTABLE, max_size=120),
    metrics=st.dictionaries(st.text(PRINTABLE, max_size=64), st.floats(-9, 9), max_size=40),
)


@given(lines)
def test_a_line_contains_its_record_in_one_piece(line: RankLine) -> None:
    text = log_line.format_line(line)
    assert text.startswith("[muster] {")
    assert text.isascii()
    assert text.isprintable()
    assert len(text) <= log_line.MAX_CHARS
    result = log_line.parse_line(text)
    assert result is not None
    assert replace(result, last_lines=(), metrics={}, activity=None) == replace(
        line, last_lines=(), metrics={}, activity=None
    )
    # the oldest lines are dropped if there is no room
    assert result.last_lines == line.last_lines[len(line.last_lines) - len(result.last_lines) :]
    assert result.metrics in ({}, line.metrics)


@given(lines)
def test_a_quoted_record_is_not_found(line: RankLine) -> None:
    quoted = ("ValueError: loss=3", "torch_xla/x.py Invalid requirement mpirun.real [ORTE] Exception")
    line = replace(line, last_lines=quoted, activity="Exception", metrics={})
    text = log_line.format_line(line)
    assert TAKEN_FOR_A_REASON.search(text) is None
    result = log_line.parse_line(text)
    assert result is not None
    assert result.last_lines == quoted


def test_a_line_is_found_wherever_it_stands() -> None:
    text = log_line.format_line(LINE)
    for around in (f"{text}\n", f"[1,3]<stdout>:{text}", f"50%\r{text}", f"loss=0.1{text} and more"):
        assert log_line.parse_line(around) == LINE


@pytest.mark.parametrize("cut", [1, 20, 60, 90])
def test_a_line_that_was_cut_says_nothing(cut: int) -> None:
    assert log_line.parse_line(log_line.format_line(LINE)[:-cut]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[muster] the agent's own words",
        "[muster] {}",
        "[muster] []",
        "[muster] {" + '"a":[' * 3000,
        '[muster] {"event":"started"}',
        log_line.format_line(LINE).replace('"rank":3', '"rank":"3"'),
        log_line.format_line(LINE).replace('"rank":3', '"rank":3,"more":1'),
        log_line.format_line(LINE).replace('"at":10.5', '"at":NaN'),
        log_line.format_line(LINE).replace('"at":10.5', '"at":1e999'),
    ],
)
def test_what_is_no_line_of_ours_says_nothing(text: str) -> None:
    assert log_line.parse_line(text) is None


def test_only_what_is_known_is_written() -> None:
    document = json.loads(log_line.format_line(LINE).removeprefix(log_line.MARK))
    assert set(document) == {"event", "host", "rank", "local_rank", "world", "at", "started_at", "pid"}


@pytest.mark.parametrize(("world", "seconds"), [(1, 30), (600, 30), (1200, 60), (100_000, 120)])
def test_more_ranks_write_less_often(world: int, seconds: float) -> None:
    assert log_line.compute_interval(world) == seconds

"""A status is parsed as it was written, and other content does no harm."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.status.progress import Progress
from muster.api.status.reader import read_status
from muster.api.status.status import (
    Condition,
    NodeCounts,
    RankDetail,
    RankStatus,
    StateRange,
    Status,
    StepRange,
)
from muster.api.yaml.serialise import serialise_status
from unit.api.test_bad_resources import paths_of

TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=7)
NUMBERS = st.integers(0, 2**31)
MAYBE_TEXT = st.none() | TEXTS.filter(bool)
MAYBE_NUMBER = st.none() | NUMBERS
FLOATS = st.floats(allow_nan=False, allow_infinity=False)

# Hypothesis reads the models' signatures, which pydantic makes at their first use.
for model in (Status, Condition, NodeCounts, Progress, RankDetail, RankStatus, StateRange, StepRange):
    model.model_rebuild()

STATUSES = st.builds(
    Status,
    observedGeneration=NUMBERS,
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    message=TEXTS,
    conditions=st.lists(
        st.builds(Condition, type=TEXTS, status=TEXTS, reason=TEXTS, message=TEXTS, lastTransitionTime=TEXTS),
        max_size=3,
    ).map(tuple),
    nodes=st.none() | st.builds(NodeCounts, desired=NUMBERS, ready=NUMBERS),
    ranks=st.none()
    | st.builds(
        RankStatus,
        world=NUMBERS,
        running=NUMBERS,
        ready=TEXTS,
        byState=st.lists(st.builds(StateRange), max_size=2).map(tuple),
        byStep=st.lists(st.builds(StepRange), max_size=2).map(tuple),
        details=st.lists(st.builds(RankDetail, pod=MAYBE_TEXT, signal=MAYBE_NUMBER, at=MAYBE_TEXT), max_size=2).map(
            tuple
        ),
    ),
    progress=st.none()
    | st.builds(
        Progress,
        step=MAYBE_NUMBER,
        stepsPerSecond=st.none() | FLOATS,
        metrics=st.dictionaries(TEXTS, FLOATS, max_size=3),
        at=MAYBE_TEXT,
        # an empty one isn't written, as if there was none
    ).filter(lambda progress: progress != Progress()),
    attempt=NUMBERS,
    startTime=MAYBE_TEXT,
    completionTime=MAYBE_TEXT,
)

CONDITION: dict[str, JSON] = {
    "type": "Running",
    "status": "True",
    "reason": "Running",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}


@settings(deadline=None)
@given(STATUSES)
def test_what_was_written_is_read_back(status: Status) -> None:
    assert read_status({"status": serialise_status(status)}) == status


def test_what_says_nothing_is_not_written_except_a_conditions_message() -> None:
    detail = RankDetail(rank=1, node=0, state="Failed", reason="RankFailed")
    ready = Condition(type="Running", status="True", reason="Running", last_transition_time="2026-01-01T00:00:00Z")
    ranks = RankStatus(world=2, running=1, ready="1/2", details=(detail,))
    fields = serialise_status(Status(conditions=(ready,), ranks=ranks, progress=Progress(step=0)))
    assert fields["ranks"] == {
        "world": 2,
        "running": 1,
        "ready": "1/2",
        "details": [{"rank": 1, "node": 0, "state": "Failed", "reason": "RankFailed"}],
    }
    assert fields["progress"] == {"step": 0}
    assert fields["conditions"] == [
        {
            "type": "Running",
            "status": "True",
            "reason": "Running",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 0,
        }
    ]


@pytest.mark.parametrize("resource", [{}, {"status": None}, {"status": []}, {"status": "Running"}, {"status": {}}])
def test_no_status_is_one_that_knows_nothing(resource: dict[str, JSON]) -> None:
    assert read_status(resource) == Status()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"phase": "Running", "isElastic": True}, {"phase": "Running"}),
        ({"phase": "Running", "attempt": "two"}, {"phase": "Running"}),
        ({"phase": None, "attempt": 2}, {"attempt": 2}),
        ({"start_time": "x", "startTime": "y"}, {"startTime": "y"}),
        ({"conditions": [CONDITION, {"type": "Failed"}, 3, CONDITION]}, {"conditions": [CONDITION, CONDITION]}),
        ({"conditions": [{**CONDITION, "since": 1}]}, {"conditions": [CONDITION]}),
        ({"conditions": "none", "attempt": 1}, {"attempt": 1}),
        ({"conditions": [CONDITION] * 17, "attempt": 1}, {"attempt": 1}),
        ({"nodes": {"desired": 2}, "attempt": 1}, {"attempt": 1}),
        ({"progress": {"step": 3, "metrics": {"a": "b", "c": 1}}}, {"progress": {"step": 3, "metrics": {"c": 1.0}}}),
        ({"message": "half of a pair: \ud800", "attempt": 1}, {}),
        ({"\udfff": 1, "attempt": 1}, {}),
    ],
    ids=str,
)
def test_what_cannot_be_read_counts_as_not_there(written: JSON, read: dict[str, JSON]) -> None:
    assert read_status({"status": written}) == read_status({"status": read})
    assert serialise_status(read_status({"status": read})) == {**serialise_status(Status()), **read}


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(STATUSES, st.data())
def test_nothing_in_a_status_stops_its_reader(status: Status, data: st.DataObject) -> None:
    written = copy.deepcopy(serialise_status(status))
    *around, last = data.draw(st.sampled_from([path for path in paths_of(written) if path]))
    place: JSON = written
    for key in around:
        place = place[key]  # type: ignore[index]
    place[last] = data.draw(JUNK)  # type: ignore[index]
    assert isinstance(read_status({"status": written}), Status)

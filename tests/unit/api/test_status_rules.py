"""The parts of a status that must be readable before the operator acts on it."""

import pytest
from hypothesis import given, settings

from muster.api.document import JSON
from muster.api.status.rules import find_status_problems
from muster.api.status.status import Condition, Status
from muster.api.yaml.serialise import serialise_status
from unit.api.test_status_reader import JUNK

AT = "2026-01-01T00:00:00Z"


def condition(kind: str, status: JSON = "True", **changes: JSON) -> dict[str, JSON]:
    return {"type": kind, "status": status, "reason": "Because", "lastTransitionTime": AT, **changes}


WRITTEN = [
    Status(),
    Status(phase="Running", attempt=1, start_time=AT),
    Status(
        phase="Succeeded",
        conditions=(Condition(type="Complete", status="True", reason="AllRanksSucceeded", last_transition_time=AT),),
        attempt=2,
        start_time=AT,
        completion_time=AT,
    ),
]


@pytest.mark.parametrize("status", WRITTEN, ids=lambda status: status.phase)
def test_what_muster_writes_is_clear(status: Status) -> None:
    assert find_status_problems(serialise_status(status)) == ()


@pytest.mark.parametrize(
    "written",
    [
        {"phase": "Dreaming", "completionTime": "later", "nodes": 3, "ranks": "all", "progress": []},
        {"conditions": [condition("Running", "maybe", lastTransitionTime="once"), condition("Elastic", 3)]},
    ],
    ids=str,
)
def test_what_decides_nothing_may_be_anything(written: dict[str, JSON]) -> None:
    assert find_status_problems(written) == ()


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"attempt": -1}, "status.attempt: found -1; a whole number from 0 is expected"),
        ({"attempt": "two"}, 'status.attempt: found "two"; a whole number'),
        ({"attempt": True}, "status.attempt: found true; a whole number"),
        ({"attempt": None}, "status.attempt: found nothing; a whole number"),
        ({"startTime": "yesterday"}, 'status.startTime: found "yesterday"; a time such as 2026-11-21T04:05:19Z'),
        ({"startTime": 7}, "status.startTime: found 7; a time"),
        ({"startTime": ""}, 'status.startTime: found ""; a time'),
        ({"startTime": None}, "status.startTime: found nothing; a time"),
        ({"conditions": "none"}, "status.conditions: a list of at most 16 conditions is expected"),
        ({"conditions": [condition(f"T{n}") for n in range(17)]}, "status.conditions: a list of at most 16"),
        ({"conditions": ["Complete"]}, "status.conditions[0]: a condition with a type is expected"),
        ({"conditions": [{"status": "True"}]}, "status.conditions[0]: a condition with a type is expected"),
        (
            {"conditions": [condition("Running"), condition("Complete", "true")]},
            'status.conditions[1].status: found "true" of Complete; allowed: True, False, Unknown',
        ),
        ({"conditions": [condition("Suspended", None)]}, "status.conditions[0].status: found nothing of Suspended"),
        ({"conditions": [condition("Failed", reason={})]}, "status.conditions[0].reason: found fields of Failed"),
        (
            {"conditions": [condition("Failed", lastTransitionTime="x")]},
            'status.conditions[0].lastTransitionTime: found "x"; a time',
        ),
        (
            {"phase": "Succeeded"},
            "status.conditions: the phase is Succeeded and Complete isn't True; restore the condition",
        ),
        (
            {"phase": "Failed", "conditions": [condition("Failed", "False")]},
            "status.conditions: the phase is Failed and Failed isn't True",
        ),
    ],
    ids=str,
)
def test_what_decides_is_named_when_it_can_t_be_read(written: dict[str, JSON], problem: str) -> None:
    (found,) = find_status_problems(written)
    assert str(found).startswith(problem)


def test_every_problem_is_reported_at_once() -> None:
    result = find_status_problems({"attempt": -1, "startTime": "x", "conditions": [condition("Failed", "no"), 3]})
    assert [problem.path for problem in result] == [
        "status.attempt",
        "status.startTime",
        "status.conditions[0].status",
        "status.conditions[1]",
    ]


@settings(deadline=None)
@given(JUNK, JUNK, JUNK, JUNK)
def test_nothing_stops_the_rules(attempt: JSON, start: JSON, conditions: JSON, phase: JSON) -> None:
    find_status_problems({"attempt": attempt, "startTime": start, "conditions": conditions, "phase": phase})
    find_status_problems({"conditions": [condition("Complete"), conditions], "phase": phase})

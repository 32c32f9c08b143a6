"""The changes of a status that cause an Event, and those that muster writes at once."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.problem import Problem
from muster.core.status.events import JobEvent, list_new_events, list_past_events
from muster.core.status.significant_change import is_significant_change
from muster.core.status.unreconciled.refused_status import make_refused_status
from unit.core.builders import (
    START,
    compute_status,
    ctrl_c_request,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    ready_node,
    running_node,
    stopped_node,
    stopped_rank,
    with_spec,
)

NO_ROOM = Problem("Unschedulable", "none of 5 nodes has room")
IMAGE_PROBLEM = Problem("ImageNotFound", "image nope:1 doesn't exist")


def a_job(*, suspend: bool = False) -> Job:
    return with_spec(job(1, 1), suspend=suspend)


def waiting_node(problem: Problem) -> NodeFacts:
    return node(0, process=ProcessFacts(ProcessState.WAITING, problem=problem))


EventFields = tuple[str, str, str]


def event_fields(events: Sequence[JobEvent]) -> list[EventFields]:
    """Return the type, reason and message of each event."""
    return [(event.type, event.reason, event.message) for event in events]


def statuses(*steps: tuple[Job, JobFacts]) -> list[Status]:
    """Return the statuses of a job that is reconciled twice with each of these facts."""
    result = [Status()]
    for seconds, (each_job, job_facts) in enumerate(steps):
        for _ in range(2):
            result.append(compute_status(each_job, result[-1], job_facts, START + seconds))
    return result


def events_of(*steps: tuple[Job, JobFacts]) -> list[JobEvent]:
    """Return the events of a job that is reconciled with these facts."""
    return [event for before, after in pairwise(statuses(*steps)) for event in list_new_events(before, after)]


REPEATABLE_REASONS = ("Started", "Suspended", "Resumed", "Completed", "Failed", "Refused")
STARTED_EVENT = ("Normal", "Started", "The node is ready: 1 rank is started (attempt 1)")
CASES: Sequence[tuple[list[tuple[Job, JobFacts]], list[EventFields]]] = (
    ([(a_job(), facts(missing_node(0))), (a_job(), facts(node(0)))], []),
    (
        [
            (a_job(), facts(ready_node(0))),
            (a_job(), facts(running_node(0, rank(0)))),
            (a_job(), facts(finished_node(0, exited_rank(0, 3, exit_code=0)))),
        ],
        [STARTED_EVENT, ("Normal", "Completed", "The rank succeeded")],
    ),
    (
        [(a_job(), facts(ready_node(0))), (a_job(), facts(stopped_node(0, exited_rank(0, 3, exit_code=7))))],
        [STARTED_EVENT, ("Warning", "Failed", "Rank 0 on digits-0 failed with exit code 7")],
    ),
    (
        [(a_job(), facts(waiting_node(NO_ROOM))), (a_job(), facts(waiting_node(IMAGE_PROBLEM)))],
        [
            ("Warning", "Unschedulable", "digits-0: none of 5 nodes has room"),
            ("Warning", "ImageNotFound", "digits-0: image nope:1 doesn't exist"),
        ],
    ),
    (
        [
            (
                a_job(),
                replace(facts(missing_node(0)), refusal=Problem("InvalidObject", "no such field: spec.template.x")),
            )
        ],
        [("Warning", "Refused", "no such field: spec.template.x")],
    ),
    (
        [
            (a_job(), facts(ready_node(0))),
            (a_job(suspend=True), facts(running_node(0, rank(0)))),
            (a_job(suspend=True), facts(stopped_node(0, stopped_rank(0, 3)))),
            (a_job(suspend=True), facts(missing_node(0))),
            (a_job(), facts(missing_node(0))),
        ],
        [
            STARTED_EVENT,
            ("Normal", "Suspended", "Suspended: set spec.suspend to false to start the job again"),
            ("Normal", "Resumed", "spec.suspend is false: the ranks start again"),
        ],
    ),
)


@pytest.mark.parametrize(("steps", "events"), CASES)
def test_each_event_is_created_once(steps: list[tuple[Job, JobFacts]], events: list[EventFields]) -> None:
    assert event_fields(events_of(*steps)) == events


@pytest.mark.parametrize(("steps", "events"), CASES)
def test_each_later_status_repeats_the_past_events_unchanged(
    steps: list[tuple[Job, JobFacts]], events: list[EventFields]
) -> None:
    first = [event for event in events_of(*steps) if event.reason in REPEATABLE_REASONS]
    repeated = [list_past_events(status) for status in statuses(*steps)]

    # Later statuses repeat the same events and no others.
    assert {event for past in repeated for event in past} == set(first)
    assert [event for event in first if event.reason == events[-1][1]] == list(repeated[-1][-1:])


def test_a_refused_resource_gets_another_event_only_for_another_problem() -> None:
    first = make_refused_status(Status(), InvalidResource((FieldProblem("spec.nodes", "found 0"),)), 1, START)
    second = make_refused_status(first, InvalidResource((FieldProblem("spec.nodes", "found -1"),)), 2, START)

    assert event_fields(list_new_events(Status(), first)) == [
        ("Warning", "Refused", "muster refuses the resource: spec.nodes: found 0")
    ]
    assert list_new_events(first, first) == ()
    assert [event.reason for event in list_new_events(first, second)] == ["Refused"]


def test_a_long_message_fits_an_event() -> None:
    long_refusal = replace(facts(missing_node(0)), refusal=Problem("InvalidObject", "é" * 5000))

    (event,) = events_of((a_job(), long_refusal))

    assert len(event.message.encode()) <= 1024


def status_at(*nodes: NodeFacts, at: float = 10) -> Status:
    before = Status(attempt=1, start_time="2025-11-21T04:05:05Z")
    return compute_status(job(2, 1), before, facts(*nodes), START + at)


RUNNING_STATUS = status_at(
    running_node(0, rank(0, step=5, highest_step_at=START)), running_node(1, rank(1, step=5, highest_step_at=START))
)


@pytest.mark.parametrize(
    ("after", "is_significant"),
    [
        (RUNNING_STATUS, False),
        (
            status_at(
                running_node(0, rank(0, step=9, highest_step_at=START + 1)),
                running_node(1, rank(1, step=50, highest_step_at=START + 1)),
            ),
            False,
        ),
        (status_at(running_node(0, rank(0)), running_node(1, exited_rank(1, 9, exit_code=0))), True),
        (status_at(running_node(0, rank(0)), running_node(1, exited_rank(1, 9, exit_code=1))), True),
        # Its agent no longer reports.
        (status_at(running_node(0, rank(0)), running_node(1, rank(1), reported_at=-10)), True),
        (RUNNING_STATUS.model_copy(update={"attempt": 2}), True),
        (RUNNING_STATUS.model_copy(update={"start_time": None}), True),
        (RUNNING_STATUS.model_copy(update={"observed_generation": 4}), True),
        (RUNNING_STATUS.model_copy(update={"phase": "Stopping"}), True),
        (
            compute_status(
                job(2, 1),
                RUNNING_STATUS,
                facts(running_node(0, rank(0)), running_node(1, rank(1)), stop=ctrl_c_request(9)),
                START + 10,
            ),
            True,
        ),
    ],
)
def test_significant_changes(after: Status, *, is_significant: bool) -> None:
    assert is_significant_change(RUNNING_STATUS, after) is is_significant


def starting_at(*nodes: NodeFacts) -> Status:
    return compute_status(job(2, 1), Status(), facts(*nodes), START + 10)


@pytest.mark.parametrize(
    ("before", "after", "is_significant"),
    [
        (
            starting_at(missing_node(0), missing_node(1)),
            starting_at(missing_node(0), node(1, process=ProcessFacts(ProcessState.WAITING))),
            False,
        ),
        (starting_at(missing_node(0), ready_node(1)), starting_at(ready_node(0), ready_node(1)), True),
        (starting_at(node(0), node(1)), starting_at(ready_node(0), node(1)), False),
        (starting_at(missing_node(0), ready_node(1)), starting_at(running_node(0, rank(0)), ready_node(1)), True),
    ],
)
def test_significant_changes_before_the_ranks_run(before: Status, after: Status, *, is_significant: bool) -> None:
    assert is_significant_change(before, after) is is_significant

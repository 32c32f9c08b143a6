"""The changes that cause an Event, and those that are written at once."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.status.events import JobEvent, list_new_events, list_past_events
from muster.core.status.refused_status import make_refused_status
from muster.core.status.significant_change import is_significant_change
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
)

ROOM = Problem("Unschedulable", "none of 5 nodes has room")
IMAGE = Problem("ImageNotFound", "image nope:1 doesn't exist")


def asked(*, suspend: bool = False) -> Job:
    plain = job(1, 1)
    return plain.model_copy(update={"spec": plain.spec.model_copy(update={"suspend": suspend})})


def waiting(problem: Problem) -> NodeFacts:
    return node(0, process=ProcessFacts(ProcessState.WAITING, problem=problem))


Words = tuple[str, str, str]


def words(value: Sequence[JobEvent]) -> list[Words]:
    """Return the messages of events."""
    return [(note.type, note.reason, note.message) for note in value]


def statuses(*steps: tuple[Job, JobFacts]) -> list[Status]:
    """Return the statuses of a job with these facts, one reconciliation after the other, each twice."""
    result = [Status()]
    for seconds, (a_job, known) in enumerate(steps):
        for _ in range(2):
            result.append(compute_status(a_job, result[-1], known, START + seconds))
    return result


def story(*steps: tuple[Job, JobFacts]) -> list[JobEvent]:
    """Its events."""
    return [note for before, after in pairwise(statuses(*steps)) for note in list_new_events(before, after)]


STEPS = ("Started", "Suspended", "Resumed", "Completed", "Failed", "Refused")
START_TOLD = ("Normal", "Started", "The node is ready: 1 rank is started (attempt 1)")
CASES: Sequence[tuple[list[tuple[Job, JobFacts]], list[Words]]] = (
    ([(asked(), facts(missing_node(0))), (asked(), facts(node(0)))], []),
    (
        [
            (asked(), facts(ready_node(0))),
            (asked(), facts(running_node(0, rank(0)))),
            (asked(), facts(finished_node(0, exited_rank(0, 3, exit_code=0)))),
        ],
        [START_TOLD, ("Normal", "Completed", "The rank succeeded")],
    ),
    (
        [(asked(), facts(ready_node(0))), (asked(), facts(stopped_node(0, exited_rank(0, 3, exit_code=7))))],
        [START_TOLD, ("Warning", "Failed", "Rank 0 on digits-0 failed with exit code 7")],
    ),
    (
        [(asked(), facts(waiting(ROOM))), (asked(), facts(waiting(IMAGE)))],
        [
            ("Warning", "Unschedulable", "digits-0: none of 5 nodes has room"),
            ("Warning", "ImageNotFound", "digits-0: image nope:1 doesn't exist"),
        ],
    ),
    (
        [(asked(), replace(facts(missing_node(0)), refusal=Problem("InvalidPod", "no such field: spec.template.x")))],
        [("Warning", "Refused", "no such field: spec.template.x")],
    ),
    (
        [
            (asked(), facts(ready_node(0))),
            (asked(suspend=True), facts(running_node(0, rank(0)))),
            (asked(suspend=True), facts(stopped_node(0, stopped_rank(0, 3)))),
            (asked(suspend=True), facts(missing_node(0))),
            (asked(), facts(missing_node(0))),
        ],
        [
            START_TOLD,
            ("Normal", "Suspended", "Suspended: set spec.suspend to false to start the job again"),
            ("Normal", "Resumed", "spec.suspend is false: the ranks start again"),
        ],
    ),
)


@pytest.mark.parametrize(("steps", "events"), CASES)
def test_each_event_is_created_once(steps: list[tuple[Job, JobFacts]], events: list[Words]) -> None:
    assert words(story(*steps)) == events


@pytest.mark.parametrize(("steps", "events"), CASES)
def test_the_last_events_can_be_repeated_unchanged(steps: list[tuple[Job, JobFacts]], events: list[Words]) -> None:
    first = [note for note in story(*steps) if note.reason in STEPS]
    again = [list_past_events(status) for status in statuses(*steps)]

    # A later status yields the same events for every step, and no others.
    assert {note for notes_again in again for note in notes_again} == set(first)
    assert [note for note in first if note.reason == events[-1][1]] == list(again[-1][-1:])


def test_a_refused_resource_gets_another_event_only_for_another_problem() -> None:
    first = make_refused_status(Status(), InvalidResource((FieldProblem("spec.nodes", "found 0"),)), 1, START)
    second = make_refused_status(first, InvalidResource((FieldProblem("spec.nodes", "found -1"),)), 2, START)

    assert words(list_new_events(Status(), first)) == [
        ("Warning", "Refused", "muster refuses the resource: spec.nodes: found 0")
    ]
    assert list_new_events(first, first) == ()
    assert [note.reason for note in list_new_events(first, second)] == ["Refused"]


def test_a_long_message_fits_an_event() -> None:
    long = replace(facts(missing_node(0)), refusal=Problem("InvalidPod", "é" * 5000))

    (note,) = story((asked(), long))

    assert len(note.message.encode()) <= 1024


def status_at(*nodes: NodeFacts, at: float = 10) -> Status:
    before = Status(attempt=1, start_time="2025-11-21T04:05:05Z")
    return compute_status(job(2, 1), before, facts(*nodes), START + at)


RUNS = status_at(running_node(0, rank(0, step=5, stepped_at=START)), running_node(1, rank(1, step=5, stepped_at=START)))


@pytest.mark.parametrize(
    ("after", "news"),
    [
        (RUNS, False),
        (
            status_at(
                running_node(0, rank(0, step=9, stepped_at=START + 1)),
                running_node(1, rank(1, step=50, stepped_at=START + 1)),
            ),
            False,
        ),
        (status_at(running_node(0, rank(0)), running_node(1, exited_rank(1, 9, exit_code=0))), True),
        (status_at(running_node(0, rank(0)), running_node(1, exited_rank(1, 9, exit_code=1))), True),
        # It does not report any more.
        (status_at(running_node(0, rank(0)), running_node(1, rank(1), heard=-10)), True),
        (RUNS.model_copy(update={"attempt": 2}), True),
        (RUNS.model_copy(update={"start_time": None}), True),
        (RUNS.model_copy(update={"observed_generation": 4}), True),
        (RUNS.model_copy(update={"phase": "Stopping"}), True),
        (
            compute_status(
                job(2, 1),
                RUNS,
                facts(running_node(0, rank(0)), running_node(1, rank(1)), stop=ctrl_c_request(9)),
                START + 10,
            ),
            True,
        ),
    ],
)
def test_what_is_news(after: Status, *, news: bool) -> None:
    assert is_significant_change(RUNS, after) is news

"""A start in the status is not forgotten, even if a part of the status is lost."""

import pytest

from muster.api.status.status import Condition, Status
from muster.core.actions import CreateNode, SendCommand
from muster.core.decide import decide
from muster.core.facts import JobFacts, ProcessFacts, ProcessState
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.outcome import Verdict
from unit.core.builders import (
    START,
    T0,
    compute_status,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    ready_node,
    running_node,
)

AT = "2025-11-21T04:05:05Z"
RUNS = facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)))
SILENT = facts(node(0), node(1))
GONE = facts(*(node(number, process=ProcessFacts(ProcessState.MISSING, 0)) for number in range(2)))


def suspended(status: str, reason: str) -> Condition:
    return Condition(type="Suspended", status=status, reason=reason, last_transition_time=AT)


NOT = suspended("False", "NotSuspended")
DONE = suspended("True", "Suspended")
OVER = suspended("False", "Resumed")


@pytest.mark.parametrize(
    ("previous", "told"),
    [
        (Status(), False),
        (Status(phase="Running"), False),
        (Status(attempt=1, start_time=AT), True),
        (Status(start_time=AT), True),
        # Another client removed the time.
        (Status(attempt=1, phase="Running"), True),
        (Status(attempt=1, phase="Starting", conditions=(NOT,)), True),
        (Status(attempt=1, phase="Suspended", conditions=(DONE,)), False),
        (Status(attempt=1, phase="Pending", conditions=(OVER,)), False),
        (Status(attempt=1, phase="Starting", conditions=(OVER,)), False),
        (Status(attempt=2, phase="Running", conditions=(OVER,)), True),
        (Status(attempt=2, phase="Starting", start_time=AT, conditions=(OVER,)), True),
    ],
    ids=str,
)
def test_only_a_suspension_undoes_a_start(previous: Status, *, told: bool) -> None:
    assert previous.was_started is told


def running_status(*conditions: Condition) -> Status:
    """Return a running job's status without its start time."""
    return compute_status(job(), Status(conditions=conditions), RUNS, START + 10).model_copy(
        update={"start_time": None}
    )


@pytest.mark.parametrize("previous", [running_status(), Status(attempt=1), Status()], ids=["time", "most", "all"])
def test_ranks_that_run_are_known_again_by_what_their_agents_say(previous: Status) -> None:
    status = compute_status(job(), previous, RUNS, START + 10)
    assert (status.phase, status.attempt, status.start_time) == ("Running", 1, "2025-11-21T04:05:05Z")
    assert status.ranks is not None
    assert status.ranks.running == 4


@pytest.mark.parametrize("known", [SILENT, GONE], ids=["silent", "gone"])
def test_ranks_without_reports_are_not_started_again(known: JobFacts) -> None:
    previous = running_status()
    seen = infer(job(), previous, known, T0 + 60)
    actions = decide(job(), seen, judge(job(), previous, seen, T0 + 60), T0 + 60, 2)
    assert not [action for action in actions if isinstance(action, CreateNode | SendCommand)]


def test_missing_pods_fail_a_job_that_had_started() -> None:
    previous = running_status()
    outcome = judge(job(), previous, infer(job(), previous, GONE, T0 + 60), T0 + 60)
    assert outcome.verdict is Verdict.FAILED


def test_a_good_end_is_reported_as_one() -> None:
    good = facts(
        finished_node(0, exited_rank(0, 9, 0), exited_rank(1, 9, 0)),
        finished_node(1, exited_rank(2, 9, 0), exited_rank(3, 9, 0)),
    )
    assert compute_status(job(), running_status(), good, START + 60).phase == "Succeeded"


def test_a_resumed_job_is_started_once_more() -> None:
    previous = Status(attempt=1, phase="Starting", conditions=(OVER,))
    status = compute_status(job(), previous, facts(ready_node(0), ready_node(1)), START + 10)
    assert (status.attempt, status.start_time is not None) == (2, True)
    assert compute_status(job(), previous, facts(missing_node(0), missing_node(1)), START + 60).start_time is None

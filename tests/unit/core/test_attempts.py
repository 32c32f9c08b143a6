"""A job that was started counts as started, even if parts of its status are lost."""

import pytest

from muster.api.status.status import Condition, Status
from muster.core.actions import CreateNode, SendCommand
from muster.core.decide import decide
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts, ProcessFacts, ProcessState
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
RUNNING_FACTS = facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)))
SILENT_FACTS = facts(node(0), node(1))
MISSING_FACTS = facts(*(node(number, process=ProcessFacts(ProcessState.MISSING, 0)) for number in range(2)))


def suspended_condition(status: str, reason: str) -> Condition:
    return Condition(type="Suspended", status=status, reason=reason, last_transition_time=AT)


NOT_SUSPENDED = suspended_condition("False", "NotSuspended")
SUSPENDED = suspended_condition("True", "Suspended")
RESUMED = suspended_condition("False", "Resumed")


@pytest.mark.parametrize(
    ("previous", "was_started"),
    [
        (Status(), False),
        (Status(phase="Running"), False),
        (Status(attempt=1, start_time=AT), True),
        (Status(start_time=AT), True),
        # Another client removed the time.
        (Status(attempt=1, phase="Running"), True),
        (Status(attempt=1, phase="Starting", conditions=(NOT_SUSPENDED,)), True),
        (Status(attempt=1, phase="Suspended", conditions=(SUSPENDED,)), False),
        (Status(attempt=1, phase="Pending", conditions=(RESUMED,)), False),
        (Status(attempt=1, phase="Starting", conditions=(RESUMED,)), False),
        (Status(attempt=2, phase="Running", conditions=(RESUMED,)), True),
        (Status(attempt=2, phase="Starting", start_time=AT, conditions=(RESUMED,)), True),
    ],
    ids=str,
)
def test_only_a_suspended_job_counts_as_not_started(previous: Status, *, was_started: bool) -> None:
    assert previous.was_started is was_started


def running_status(*conditions: Condition) -> Status:
    """Return a running job's status without its start time."""
    return compute_status(job(), Status(conditions=conditions), RUNNING_FACTS, START + 10).model_copy(
        update={"start_time": None}
    )


@pytest.mark.parametrize(
    "previous", [running_status(), Status(attempt=1), Status()], ids=["no start time", "only the attempt", "empty"]
)
def test_reports_restore_the_attempt_and_the_start_time(previous: Status) -> None:
    status = compute_status(job(), previous, RUNNING_FACTS, START + 10)
    assert (status.phase, status.attempt, status.start_time) == ("Running", 1, "2025-11-21T04:05:05Z")
    assert status.ranks is not None
    assert status.ranks.running == 4


@pytest.mark.parametrize("job_facts", [SILENT_FACTS, MISSING_FACTS], ids=["silent", "missing"])
def test_ranks_without_reports_are_not_started_again(job_facts: JobFacts) -> None:
    previous = running_status()
    completed = complete_facts(job(), previous, job_facts, T0 + 60)
    actions = decide(job(), completed, judge(job(), previous, completed, T0 + 60), T0 + 60, 2)
    assert not [action for action in actions if isinstance(action, CreateNode | SendCommand)]


def test_missing_pods_fail_a_job_that_had_started() -> None:
    previous = running_status()
    outcome = judge(job(), previous, complete_facts(job(), previous, MISSING_FACTS, T0 + 60), T0 + 60)
    assert outcome.verdict is Verdict.FAILED


def test_a_success_is_reported_without_a_start_time() -> None:
    succeeded = facts(
        finished_node(0, exited_rank(0, 9, 0), exited_rank(1, 9, 0)),
        finished_node(1, exited_rank(2, 9, 0), exited_rank(3, 9, 0)),
    )
    assert compute_status(job(), running_status(), succeeded, START + 60).phase == "Succeeded"


def test_a_resumed_job_is_started_once_more() -> None:
    previous = Status(attempt=1, phase="Starting", conditions=(RESUMED,))
    status = compute_status(job(), previous, facts(ready_node(0), ready_node(1)), START + 10)
    assert (status.attempt, status.start_time is not None) == (2, True)
    assert compute_status(job(), previous, facts(missing_node(0), missing_node(1)), START + 60).start_time is None

"""A suspended job deletes its pods, and starts again when it is resumed."""

import dataclasses

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.core.actions import Action, CreateNode, RemoveNode, SendCommand
from muster.core.decide import decide, find_requeue_time
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.judge import judge
from muster.core.outcome import Outcome, Verdict
from muster_worker.contract.schema import AgentPhase, Command, CommandKind
from unit.core.builders import (
    START,
    T0,
    UID,
    agent,
    command,
    compute_status,
    exited_process,
    exited_rank,
    facts,
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

WAITING = ProcessFacts(ProcessState.WAITING, name="digits-0-0")
STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=10.0, is_graceful=True)
EXIT = Command(1, UID, 1, CommandKind.EXIT)
RUNNING_FACTS = facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)))
NO_PODS = facts(missing_node(0), missing_node(1))


def make_job(*, suspend: bool = True, deadline: int | None = None) -> Job:
    return with_spec(job(deadline=deadline), suspend=suspend)


def suspended_condition(status: str, reason: str, at: str = "2025-11-21T05:00:00Z") -> Status:
    entry = Condition(type="Suspended", status=status, reason=reason, last_transition_time=at)
    return Status(conditions=(entry,), attempt=1)


SUSPENDED = suspended_condition("True", "Suspended")
SUSPENDING = suspended_condition("False", "Suspending").model_copy(update={"start_time": "2025-11-21T04:05:05Z"})

STARTED = Status(attempt=1, start_time="2025-11-21T04:05:05Z", observed_generation=3)


def judge_job(a_job: Job, previous: Status, job_facts: JobFacts, now: float = START + 10) -> Outcome:
    return judge(a_job, previous, complete_facts(a_job, previous, job_facts, now), now)


def decide_actions(a_job: Job, previous: Status, job_facts: JobFacts, now: float = START + 10) -> list[Action]:
    completed = complete_facts(a_job, previous, job_facts, now)
    return list(decide(a_job, completed, judge(a_job, previous, completed, now), now, 1))


def exited_node(number: int) -> NodeFacts:
    """Return a node whose agent has exited as requested."""
    return dataclasses.replace(stopped_node(number), process=exited_process(12, exit_code=0), command=EXIT)


@pytest.mark.parametrize(
    ("job_facts", "actions"),
    [
        (RUNNING_FACTS, [SendCommand((0, 1), STOP)]),
        (
            facts(stopped_node(0, stopped_rank(0, 11), stopped_rank(1, 11)), running_node(1, rank(2), rank(3))),
            [SendCommand((0,), EXIT), SendCommand((1,), STOP)],
        ),
        (
            facts(exited_node(0), exited_node(1)),
            [RemoveNode(0, 10.0, "the job is suspended"), RemoveNode(1, 10.0, "the job is suspended")],
        ),
        (
            facts(node(0, process=WAITING), ready_node(1)),
            [SendCommand((1,), EXIT), RemoveNode(0, 10.0, "the job is suspended")],
        ),
        (NO_PODS, []),
    ],
)
def test_a_suspended_job_deletes_its_pods(job_facts: JobFacts, actions: list[Action]) -> None:
    assert decide_actions(make_job(), SUSPENDING, job_facts) == actions


@pytest.mark.parametrize(("pod_grace", "expected"), [(None, 10.0), (55.0, 55.0), (0.0, 1.0)])
def test_ranks_get_the_grace_period_of_their_pod(pod_grace: float | None, expected: float) -> None:
    process = dataclasses.replace(RUNNING_FACTS.nodes[0].process, grace_seconds=pod_grace)
    job_facts = facts(dataclasses.replace(RUNNING_FACTS.nodes[0], process=process), RUNNING_FACTS.nodes[1])
    commands = [
        action for action in decide_actions(make_job(), SUSPENDING, job_facts) if isinstance(action, SendCommand)
    ]

    assert {node: action.command.grace_seconds for action in commands for node in action.nodes} == {
        0: expected,
        1: 10.0,
    }


def test_a_job_that_has_ended_is_not_suspended() -> None:
    succeeded = facts(
        *(node(n, agent(n, AgentPhase.ENDED, (exited_rank(2 * n, 9, 0), exited_rank(2 * n + 1, 9, 0)))) for n in (0, 1))
    )
    failed = facts(running_node(0, rank(0), rank(1)), running_node(1, exited_rank(2, 9.0, exit_code=1), rank(3)))

    assert judge_job(make_job(), Status(), succeeded).verdict is Verdict.SUCCEEDED
    assert judge_job(make_job(), Status(), failed).verdict is Verdict.FAILED
    assert judge_job(make_job(), SUSPENDING, succeeded).verdict is Verdict.SUCCEEDED
    # muster has already sent Stop: a later end of a rank is no failure.
    assert judge_job(make_job(), SUSPENDING, failed).verdict is Verdict.SUSPENDED


def test_a_started_suspension_completes_although_the_spec_resumes_the_job() -> None:
    a_job = make_job(suspend=False)

    assert judge_job(a_job, SUSPENDING, RUNNING_FACTS).verdict is Verdict.SUSPENDED
    outcome = judge_job(a_job, SUSPENDING, NO_PODS)
    assert (outcome.verdict, outcome.is_idle) == (Verdict.SUSPENDED, True)
    assert find_requeue_time(a_job, NO_PODS, outcome, START) == START


@pytest.mark.parametrize("suspend", [True, False])
def test_a_new_spec_with_old_pods_means_that_the_job_was_suspended(*, suspend: bool) -> None:
    """The spec has three nodes now, and two pods of the previous spec run."""
    larger_job = make_job(suspend=suspend).model_copy(
        update={"spec": job(3).spec.model_copy(update={"suspend": suspend})}
    )
    job_facts = dataclasses.replace(facts(*RUNNING_FACTS.nodes, missing_node(2)), has_outdated_pods=True)
    before = STARTED.model_copy(update={"observed_generation": 2})

    assert decide_actions(larger_job, before, job_facts) == [SendCommand((0, 1), STOP)]
    status = compute_status(larger_job, before, job_facts, START + 10)
    entry = next(entry for entry in status.conditions if entry.type == "Suspended")
    assert (status.phase, entry.reason, status.observed_generation) == ("Stopping", "Suspending", 3)


def test_a_change_of_the_spec_does_not_suspend_a_job_that_is_stopping() -> None:
    a_job = make_job(suspend=False, deadline=60)
    stopping = compute_status(a_job, STARTED, RUNNING_FACTS, T0 + 61).model_copy(update={"observed_generation": 2})
    job_facts = dataclasses.replace(RUNNING_FACTS, has_outdated_pods=True)

    assert judge_job(a_job, stopping, job_facts, T0 + 62).reason == "DeadlineExceeded"


def test_the_suspension_waits_for_the_deletion_of_surplus_pods() -> None:
    job_facts = dataclasses.replace(NO_PODS, surplus_pods=("digits-2-0",))

    assert not judge_job(make_job(), SUSPENDING, job_facts).is_idle


def test_no_deadline_runs_while_the_job_is_suspended() -> None:
    late = judge_job(make_job(deadline=60), Status(), NO_PODS, T0 + 61)

    assert late.verdict is Verdict.SUSPENDED


def test_a_deadline_before_the_suspension_stays_the_reason() -> None:
    a_job = make_job(suspend=False, deadline=60)
    stopping = compute_status(a_job, Status(), RUNNING_FACTS, T0 + 61)

    assert stopping.phase == "Stopping"
    assert judge_job(make_job(deadline=60), stopping, RUNNING_FACTS, T0 + 62).reason == "DeadlineExceeded"


def test_deadlines_count_from_the_resume() -> None:
    a_job = make_job(suspend=False, deadline=60)
    resumed = suspended_condition("False", "Resumed", "2025-11-21T04:15:00Z")

    assert judge_job(a_job, SUSPENDED, NO_PODS, T0 + 700).active_since == T0 + 700
    assert judge_job(a_job, resumed, NO_PODS, T0 + 659).verdict is Verdict.UNDECIDED
    assert judge_job(a_job, resumed, NO_PODS, T0 + 661).reason == "DeadlineExceeded"


def test_a_resumed_job_has_new_pods_and_drops_the_facts_of_the_old_ones() -> None:
    old_node = dataclasses.replace(
        stopped_node(0, stopped_rank(0, 9), stopped_rank(1, 9)), process=ProcessFacts(ProcessState.MISSING, 4)
    )
    job_facts = facts(old_node, missing_node(1))

    assert decide_actions(make_job(suspend=False), SUSPENDED, job_facts) == [CreateNode(0, 5), CreateNode(1, 1)]


def test_a_resumed_job_starts_its_next_attempt() -> None:
    stale = dataclasses.replace(ready_node(0), command=command(CommandKind.STOP, 10.0))
    job_facts = facts(stale, ready_node(1))
    resumed = suspended_condition("False", "Resumed")

    (start,) = decide_actions(make_job(suspend=False), resumed, job_facts)

    assert isinstance(start, SendCommand)
    assert (start.nodes, start.command.kind, start.command.attempt) == ((0, 1), CommandKind.START, 2)


def test_the_status_shows_each_step_of_a_suspension() -> None:
    at = START
    status = Status()
    phases = []
    stopping = facts(exited_node(0), exited_node(1))
    for suspend, job_facts in (
        (False, facts(ready_node(0), ready_node(1))),
        (False, RUNNING_FACTS),
        (True, RUNNING_FACTS),
        (True, stopping),
        (True, NO_PODS),
        (False, NO_PODS),
    ):
        at += 1
        status = compute_status(make_job(suspend=suspend), status, job_facts, at)
        entry = next(entry for entry in status.conditions if entry.type == "Suspended")
        phases.append((status.phase, entry.status, entry.reason, status.attempt, status.start_time is not None))

    assert phases == [
        ("Starting", "False", "NotSuspended", 1, True),
        ("Running", "False", "NotSuspended", 1, True),
        ("Stopping", "False", "Suspending", 1, True),
        ("Stopping", "False", "Suspending", 1, True),
        ("Suspended", "True", "Suspended", 1, False),
        ("Pending", "False", "Resumed", 1, False),
    ]

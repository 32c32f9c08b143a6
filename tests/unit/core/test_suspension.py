"""A suspended job deletes its pods, and starts again when it is resumed."""

import dataclasses

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.core.actions import Action, CreateNode, RemoveNode, SendCommand
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.inference import infer
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
)

WAITING = ProcessFacts(ProcessState.WAITING, name="digits-0-0")
STOP = Command(1, UID, 1, CommandKind.STOP, grace_seconds=10.0, is_graceful=True)
EXIT = Command(1, UID, 1, CommandKind.EXIT)
RUNS = facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3)))
NO_PODS = facts(missing_node(0), missing_node(1))


def asked(*, suspend: bool = True, deadline: int | None = None) -> Job:
    plain = job(deadline=deadline)
    return plain.model_copy(update={"spec": plain.spec.model_copy(update={"suspend": suspend})})


def suspended_condition(status: str, reason: str, at: str = "2025-11-21T05:00:00Z") -> Status:
    entry = Condition(type="Suspended", status=status, reason=reason, last_transition_time=at)
    return Status(conditions=(entry,), attempt=1)


SUSPENDED = suspended_condition("True", "Suspended")
SUSPENDING = suspended_condition("False", "Suspending").model_copy(update={"start_time": "2025-11-21T04:05:05Z"})

STARTED = Status(attempt=1, start_time="2025-11-21T04:05:05Z", observed_generation=3)


def outcome_of(a_job: Job, previous: Status, current: JobFacts, now: float = START + 10) -> Outcome:
    return judge(a_job, previous, infer(a_job, previous, current, now), now)


def actions_of(a_job: Job, previous: Status, current: JobFacts, now: float = START + 10) -> list[Action]:
    seen = infer(a_job, previous, current, now)
    return list(decide(a_job, seen, judge(a_job, previous, seen, now), now, 1))


def left(number: int) -> NodeFacts:
    """Return a node whose agent has exited as requested."""
    return dataclasses.replace(stopped_node(number), process=exited_process(12, exit_code=0), command=EXIT)


@pytest.mark.parametrize(
    ("known", "actions"),
    [
        (RUNS, [SendCommand((0, 1), STOP)]),
        (
            facts(stopped_node(0, stopped_rank(0, 11), stopped_rank(1, 11)), running_node(1, rank(2), rank(3))),
            [SendCommand((0,), EXIT), SendCommand((1,), STOP)],
        ),
        (
            facts(left(0), left(1)),
            [RemoveNode(0, 10.0, "the job is suspended"), RemoveNode(1, 10.0, "the job is suspended")],
        ),
        (
            facts(node(0, process=WAITING), ready_node(1)),
            [SendCommand((1,), EXIT), RemoveNode(0, 10.0, "the job is suspended")],
        ),
        (NO_PODS, []),
    ],
)
def test_a_suspended_job_gives_up_its_pods(known: JobFacts, actions: list[Action]) -> None:
    assert actions_of(asked(), SUSPENDING, known) == actions


@pytest.mark.parametrize(("own", "given"), [(None, 10.0), (55.0, 55.0), (0.0, 1.0)])
def test_ranks_get_the_time_that_their_pod_gives_them(own: float | None, given: float) -> None:
    patient = dataclasses.replace(RUNS.nodes[0].process, grace_seconds=own)
    current = facts(dataclasses.replace(RUNS.nodes[0], process=patient), RUNS.nodes[1])
    asked_for = [action for action in actions_of(asked(), SUSPENDING, current) if isinstance(action, SendCommand)]

    assert {node: action.command.grace_seconds for action in asked_for for node in action.nodes} == {0: given, 1: 10.0}


def test_done_is_done() -> None:
    good = facts(
        *(node(n, agent(n, AgentPhase.ENDED, (exited_rank(2 * n, 9, 0), exited_rank(2 * n + 1, 9, 0)))) for n in (0, 1))
    )
    bad = facts(running_node(0, rank(0), rank(1)), running_node(1, exited_rank(2, 9.0, exit_code=1), rank(3)))

    assert outcome_of(asked(), Status(), good).verdict is Verdict.SUCCEEDED
    assert outcome_of(asked(), Status(), bad).verdict is Verdict.FAILED
    assert outcome_of(asked(), SUSPENDING, good).verdict is Verdict.SUCCEEDED
    # It was asked to stop: a later end of a rank is no failure.
    assert outcome_of(asked(), SUSPENDING, bad).verdict is Verdict.SUSPENDED


def test_a_suspension_ends_although_it_was_cancelled() -> None:
    wanted = asked(suspend=False)

    assert outcome_of(wanted, SUSPENDING, RUNS).verdict is Verdict.SUSPENDED
    over = outcome_of(wanted, SUSPENDING, NO_PODS)
    assert (over.verdict, over.is_idle) == (Verdict.SUSPENDED, True)
    assert find_requeue_time(wanted, NO_PODS, over, START) == START


@pytest.mark.parametrize("suspend", [True, False])
def test_a_spec_that_changed_unseen_tells_of_a_suspension(*, suspend: bool) -> None:
    """The job has three nodes by now, and two pods of the previous spec."""
    grown = asked(suspend=suspend).model_copy(update={"spec": job(3).spec.model_copy(update={"suspend": suspend})})
    current = dataclasses.replace(facts(*RUNS.nodes, missing_node(2)), has_outdated_pods=True)
    before = STARTED.model_copy(update={"observed_generation": 2})

    assert actions_of(grown, before, current) == [SendCommand((0, 1), STOP)]
    status = compute_status(grown, before, current, START + 10)
    entry = next(entry for entry in status.conditions if entry.type == "Suspended")
    assert (status.phase, entry.reason, status.observed_generation) == ("Stopping", "Suspending", 3)


def test_pods_that_only_look_like_those_of_another_spec_go_on() -> None:
    current = dataclasses.replace(RUNS, has_outdated_pods=True)

    assert outcome_of(job(), STARTED, current).verdict is Verdict.UNDECIDED


def test_what_ends_already_is_not_suspended_by_a_change() -> None:
    wanted = asked(suspend=False, deadline=60)
    stopping = compute_status(wanted, STARTED, RUNS, T0 + 61).model_copy(update={"observed_generation": 2})
    current = dataclasses.replace(RUNS, has_outdated_pods=True)

    assert outcome_of(wanted, stopping, current, T0 + 62).reason == "DeadlineExceeded"


def test_its_pods_are_deleted_only_when_surplus_pods_are_deleted_too() -> None:
    current = dataclasses.replace(NO_PODS, surplus_pods=("digits-2-0",))

    assert not outcome_of(asked(), SUSPENDING, current).is_idle


def test_no_deadline_runs_while_it_is_suspended() -> None:
    late = outcome_of(asked(deadline=60), Status(), NO_PODS, T0 + 61)

    assert late.verdict is Verdict.SUSPENDED


def test_a_deadline_that_was_over_before_stays_the_reason() -> None:
    wanted = asked(suspend=False, deadline=60)
    stopping = compute_status(wanted, Status(), RUNS, T0 + 61)

    assert stopping.phase == "Stopping"
    assert outcome_of(asked(deadline=60), stopping, RUNS, T0 + 62).reason == "DeadlineExceeded"


def test_deadlines_count_from_the_resume() -> None:
    wanted = asked(suspend=False, deadline=60)
    resumed = suspended_condition("False", "Resumed", "2025-11-21T04:15:00Z")

    assert outcome_of(wanted, SUSPENDED, NO_PODS, T0 + 700).active_since == T0 + 700
    assert outcome_of(wanted, resumed, NO_PODS, T0 + 659).verdict is Verdict.UNDECIDED
    assert outcome_of(wanted, resumed, NO_PODS, T0 + 661).reason == "DeadlineExceeded"


def test_a_resumed_job_has_new_pods_and_knows_nothing_of_the_old_ones() -> None:
    old = dataclasses.replace(
        stopped_node(0, stopped_rank(0, 9), stopped_rank(1, 9)), process=ProcessFacts(ProcessState.MISSING, 4)
    )
    current = facts(old, missing_node(1))

    assert actions_of(asked(suspend=False), SUSPENDED, current) == [CreateNode(0, 5), CreateNode(1, 1)]


def test_a_resumed_job_starts_its_next_attempt() -> None:
    stale = dataclasses.replace(ready_node(0), command=command(CommandKind.STOP, 10.0))
    current = facts(stale, ready_node(1))
    resumed = suspended_condition("False", "Resumed")

    (start,) = actions_of(asked(suspend=False), resumed, current)

    assert isinstance(start, SendCommand)
    assert (start.nodes, start.command.kind, start.command.attempt) == ((0, 1), CommandKind.START, 2)


def test_the_status_shows_each_step() -> None:
    at = START
    status = Status()
    phases = []
    stopping = facts(left(0), left(1))
    for suspend, known in (
        (False, facts(ready_node(0), ready_node(1))),
        (False, RUNS),
        (True, RUNS),
        (True, stopping),
        (True, NO_PODS),
        (False, NO_PODS),
    ):
        at += 1
        status = compute_status(asked(suspend=suspend), status, known, at)
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

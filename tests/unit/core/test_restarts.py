"""What follows a failure by the job's failure policy, in simulated worlds whose agents obey."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings

from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp_milliseconds
from muster.core.facts import Problem, ProcessState
from muster.core.failure.ends import End, Subject
from muster.core.failure.failure import Failure
from muster.core.restarts import Restart, find_restart
from support.searches import examples
from unit.core.builders import T0, job
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import EVENTS, condition, finish, happen, live, new_world

EVENT_TURNS = 12


def world(policy: FailurePolicy | None, nodes: int = 2) -> World:
    plain = job(nodes, 2)
    spec = plain.spec.model_copy(update={"failure_policy": policy})
    return World(plain.model_copy(update={"spec": spec}), [SimulatedNode(number, 2) for number in range(nodes)])


def started(policy: FailurePolicy | None, nodes: int = 2) -> World:
    result = world(policy, nodes)
    live(result, 5)
    assert result.status.phase == "Running"
    return result


def fail(current: World, code: int = 7, line: str = "ValueError: bad label") -> None:
    current.nodes[1].ranks[0].end(current.now, code, None, line)


def records(status: Status) -> list[tuple[int, str, str]]:
    history = status.restarts.history if status.restarts is not None else ()
    return [(record.attempt, record.reason, record.counts_as) for record in history]


def test_a_failed_rank_restarts_all_ranks_in_the_same_pods() -> None:
    current = started(FailurePolicy(max_restarts=3))
    fail(current)
    live(current, EVENT_TURNS)

    assert [node.begun for node in current.nodes] == [[1, 2], [1, 2]]
    assert [node.process.replacement for node in current.nodes] == [0, 0]
    status = current.status
    assert (status.phase, status.attempt) == ("Running", 2)
    assert records(status) == [(1, "RankFailed", "Failure")]
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert record.message.startswith("Rank 2 on digits-1 failed with exit code 7: ValueError: bad label")
    assert (record.rank, record.node, record.replaced_pods) == (2, 1, 0)


def test_the_next_attempt_is_in_the_status_before_any_agent_hears_of_it() -> None:
    current = started(FailurePolicy(max_restarts=1))
    fail(current)
    seen: list[tuple[str, int]] = []
    for _ in range(EVENT_TURNS):
        live(current)
        assert all(node.attempt <= current.status.attempt for node in current.nodes)
        seen.append((current.status.phase, current.status.attempt))
    assert list(dict.fromkeys(seen)) == [("Stopping", 1), ("Restarting", 2), ("Starting", 2), ("Running", 2)]


def test_the_budget_ends() -> None:
    current = started(FailurePolicy(max_restarts=2))
    for _ in range(3):
        fail(current)
        live(current, EVENT_TURNS)
        current.now += 60
    live(current, 3)

    assert current.status.attempt == 3
    assert current.status.phase == "Failed"
    assert current.status.message.endswith("not restarted: failurePolicy.maxRestarts (2) is used up")


def test_a_window_forgets_failures() -> None:
    current = started(FailurePolicy(max_restarts=1, window_seconds=100))
    for _ in range(3):
        fail(current)
        live(current, EVENT_TURNS)
        current.now += 101
    assert (current.status.phase, current.status.attempt) == ("Running", 4)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (2, "train.py: error: unrecognized arguments: --epoch"),
        (1, "ModuleNotFoundError: No module named 'tranformers'"),
        (1, "SyntaxError: invalid syntax"),
    ],
)
def test_an_error_of_the_script_ends_the_job_at_once(code: int, line: str) -> None:
    current = started(FailurePolicy(max_restarts=3))
    fail(current, code, line)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Failed", 1)
    assert current.status.message.endswith("not restarted: a restart would give the same error")


RULES = (
    FailureRule(action="Fail", exit_codes=(9,), ranks=(2,)),
    FailureRule(action="Ignore", exit_codes=(8,)),
    FailureRule(action="Restart", exit_codes=(2,)),
)


@pytest.mark.parametrize(
    ("code", "limit", "phase", "counts_as"),
    [
        (9, 3, "Failed", None),
        (8, 0, "Running", "Nothing"),
        (2, 1, "Running", "Failure"),
        (2, 0, "Failed", None),
        (7, 1, "Running", "Failure"),
    ],
)
def test_the_first_rule_that_matches_decides(code: int, limit: int, phase: str, counts_as: str | None) -> None:
    current = started(FailurePolicy(max_restarts=limit, rules=RULES))
    fail(current, code)
    live(current, EVENT_TURNS)
    assert current.status.phase == phase
    assert [kind for _, _, kind in records(current.status)] == ([] if counts_as is None else [counts_as])


def test_a_lost_pod_is_replaced_alone() -> None:
    current = started(FailurePolicy(max_restarts=0))
    node = current.nodes[1]
    node.leave(current.now, None, 9)
    node.process = replace(node.process, problem=Problem("Evicted", "node-b evicted it: low on memory"))
    live(current, EVENT_TURNS)

    assert [node.process.replacement for node in current.nodes] == [0, 1]
    assert current.nodes[0].begun == [1, 2]
    assert current.nodes[1].begun[-1] == 2
    assert current.status.phase == "Running"
    assert records(current.status) == [(1, "Evicted", "Disruption")]
    assert current.status.restarts is not None
    assert current.status.restarts.history[0].replaced_pods == 1


def test_a_deleted_pod_is_replaced_alone() -> None:
    current = started(FailurePolicy(max_restarts=0))
    current.nodes[0].delete(current.now, 30.0)
    live(current, EVENT_TURNS)
    assert [node.process.replacement for node in current.nodes] == [1, 0]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def drain(current: World, number: int, reason: str = "Evicted") -> None:
    """Delete the node's pod, whose SIGTERM waits for a preStop hook."""
    node = current.nodes[number]
    node.process = replace(
        node.process,
        is_terminating=True,
        deletion_requested_at=current.now,
        deletion_deadline=current.now + 30,
        problem=Problem(reason, "it has to go"),
    )


@pytest.mark.parametrize("reason", ["Evicted", "Preempted", "PodDeleted", "NodeLost"])
def test_a_pod_that_is_being_deleted_ends_the_attempt_before_it_dies(reason: str) -> None:
    current = started(FailurePolicy(max_restarts=0))
    drain(current, 1, reason)
    live(current, EVENT_TURNS)

    assert [node.process.replacement for node in current.nodes] == [0, 1]
    assert [node.begun[-1] for node in current.nodes] == [2, 2]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert records(current.status) == [(1, reason, "Disruption")]
    assert current.status.restarts is not None
    assert current.status.restarts.history[0].replaced_pods == 1


def test_a_pod_that_is_being_deleted_ends_a_job_without_a_policy() -> None:
    current = started(FailurePolicy(max_disruptions=0))
    drain(current, 0)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Failed"
    assert [entry.reason for entry in current.status.conditions if entry.type == "Failed"] == ["Evicted"]


def test_a_pod_whose_deletion_is_muster_s_own_does_not_end_the_attempt() -> None:
    current = started(FailurePolicy(max_restarts=1))
    node = current.nodes[1]
    node.process = replace(node.process, is_terminating=True, deletion_requested_at=current.now)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 1)


def test_an_attempt_does_not_start_in_a_pod_that_is_being_deleted() -> None:
    current = started(FailurePolicy(max_restarts=1))
    fail(current)
    live(current, 2)
    drain(current, 0)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Running"
    assert current.nodes[0].process.replacement == 1
    assert current.nodes[0].begun == [1, current.status.attempt]


def test_scope_pods_replaces_all_of_them() -> None:
    current = started(FailurePolicy(max_restarts=1, restart_scope="Pods"))
    fail(current)
    live(current, EVENT_TURNS)
    assert [node.process.replacement for node in current.nodes] == [1, 1]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_quick_failures_wait_longer_each_time() -> None:
    current = started(FailurePolicy(max_restarts=9))
    waits = []
    for _ in range(4):
        fail(current)
        failed_at = current.now
        attempt = current.status.attempt
        while current.nodes[0].attempt == attempt:
            live(current)
        waits.append(round(current.now - failed_at))
        live(current, 3)
    assert waits == sorted(waits)
    assert waits[0] <= 1
    assert 7 <= waits[-1] <= 10


def test_a_late_report_may_turn_a_no_into_a_restart() -> None:
    rule = FailureRule(action="Fail", exit_codes=(64,))
    current = started(FailurePolicy(max_restarts=3, rules=(rule,)))
    # Rank 2 is killed first, and its node reports a turn later than rank 0, which failed because of it.
    current.nodes[1].ranks[0].end(current.now, None, 11)
    current.nodes[1].hangs = True
    current.nodes[0].ranks[0].end(current.now + 0.05, 64, None, "lost peer")
    live(current)
    assert current.status.message.endswith("not restarted: failurePolicy.rules[0] says Fail")
    current.nodes[1].hangs = False
    live(current, EVENT_TURNS)
    assert current.status.phase == "Running"
    assert records(current.status) == [(1, "RankKilled", "Failure")]


def test_a_pod_that_was_deleted_while_the_operator_was_away_is_replaced_though_the_job_is_old() -> None:
    current = started(FailurePolicy(max_disruptions=1))
    current.now += 86_400
    live(current)
    current.nodes[1].delete(current.now, 30.0)
    current.restart_operator()
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_a_replacement_has_the_startup_time_before_the_gang_is_released() -> None:
    current = started(FailurePolicy(max_disruptions=1))
    for node in current.nodes:
        node.process = replace(node.process, scheduled_at=current.now)
    current.now += 3600
    live(current)
    current.nodes[1].waits = 10_000
    current.nodes[1].leave(current.now, None, 9)
    current.nodes[1].process = replace(current.nodes[1].process, problem=Problem("Evicted", "node-b evicted it"))
    live(current, 8)
    waiting = current.nodes[1].process
    current.nodes[1].process = replace(waiting, problem=Problem("Unschedulable", "0/2 nodes are available"))
    live(current, EVENT_TURNS)
    assert current.nodes[0].process.replacement == 0
    assert current.status.placement is None
    assert current.status.phase == "Restarting"


def test_an_evicted_replacement_keeps_the_pods_that_wait_for_it() -> None:
    current = started(FailurePolicy(max_restarts=1))
    current.nodes[1].waits = 4
    current.nodes[1].leave(current.now, None, 9)
    current.nodes[1].process = replace(current.nodes[1].process, problem=Problem("Evicted", "node-b evicted it"))
    live(current, 3)
    assert current.status.phase == "Restarting"
    current.nodes[1].process = replace(
        current.nodes[1].process, state=ProcessState.EXITED, ended_at=current.now, problem=Problem("Evicted", "again")
    )
    live(current, 2 * EVENT_TURNS)
    assert current.nodes[0].process.replacement == 0
    assert current.status.phase == "Running"
    assert [kind for _, _, kind in records(current.status)] == ["Disruption", "Disruption"]


def test_a_window_counts_all_that_it_may_allow() -> None:
    policy = FailurePolicy(max_restarts=2, window_seconds=10_000_000, rules=(RULES[1],))
    current = started(policy)
    for code in (7, *[8] * 40, 7, 7):
        current.now += 60
        fail(current, code)
        live(current, EVENT_TURNS)
    assert current.status.phase == "Failed"
    assert current.status.restarts is not None
    assert (current.status.restarts.failures, len(current.status.restarts.history)) == (2, 32)


@pytest.mark.parametrize(
    ("attempts", "follows"),
    [((1, 2), False), ((7, 8), False), ((1, 3), True), ((5, 8), True)],
)
def test_only_attempts_that_follow_one_another_fail_in_a_row(attempts: tuple[int, ...], follows: bool) -> None:  # noqa: FBT001 - a row of the table
    record = RestartRecord(
        attempt=1, reason="RankFailed", message="", step=5, counts_as="Failure", at=format_timestamp_milliseconds(T0)
    )
    history = tuple(record.model_copy(update={"attempt": attempt}) for attempt in attempts)
    restarts = NO_RESTARTS.model_copy(update={"history": history})
    previous = Status(attempt=attempts[-1] + 1, start_time=format_timestamp_milliseconds(T0), restarts=restarts)
    current = started(FailurePolicy(max_restarts=10))
    end = End(Subject.RANK, 1, "digits-1", T0 + 1000.0, rank=2, exit_code=7, step=5)
    result = find_restart(current.job, previous, Failure(T0 + 1000.0, (end,)), None)
    assert isinstance(result, Restart) is follows


def test_a_suspended_job_does_not_restart() -> None:
    current = started(FailurePolicy(max_restarts=3))
    fail(current)
    happen(current, "suspend", 0)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Suspended"
    assert all(node.process.state is ProcessState.MISSING for node in current.nodes)


@settings(max_examples=examples(60), deadline=None)
@given(events=EVENTS)
def test_each_attempt_begins_once_and_the_job_ends_after_any_events(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    check_restarts(events)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(events=EVENTS)
def test_many_jobs_restart_and_end(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    check_restarts(events)


def check_restarts(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    """Live through the events: `live` checks each decision; the budgets hold, and the job ends."""
    policy = FailurePolicy(max_restarts=2, max_disruptions=2)
    current = new_world(failure_policy=policy)
    for event, turns in events:
        happen(current, *event)
        live(current, turns)
    for _ in range(6):
        finish(current)
        current.now += 30
        if current.status.final_condition is not None:
            break

    assert current.status.final_condition is not None, (current.status.phase, current.status.message)
    restarts = current.status.restarts
    assert restarts is None or (restarts.failures <= 2 and restarts.disruptions <= 2)
    if condition(current.status, "Complete") == "True":
        ends = [(node.attempt, rank.exit_code, rank.stopped) for node in current.nodes for rank in node.ranks]
        assert ends == [(current.status.attempt, 0, False)] * 6
    assert current.now >= T0

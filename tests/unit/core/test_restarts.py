"""What follows a failure according to the job's failure policy."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings

from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp_milliseconds
from muster.core.facts import ProcessState
from muster.core.failure.ends import End, EndKind
from muster.core.failure.failure import Failure
from muster.core.problem import Problem
from muster.core.restarts import Restart, find_restart
from support.searches import choose_example_count
from unit.core.builders import START, T0, compute_status, exited_rank, facts, job, rank, running_node, with_spec
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import (
    EVENT_LISTS,
    apply_event,
    condition_status,
    new_world,
    run_rounds,
    run_to_the_end,
)

EVENT_ROUNDS = 12


def new_world_with_policy(policy: FailurePolicy | None, nodes: int = 2) -> World:
    nodes_of_job = [SimulatedNode(number, 2) for number in range(nodes)]
    return World(with_spec(job(nodes, 2), failure_policy=policy), nodes_of_job)


def start_world(policy: FailurePolicy | None = None, nodes: int = 2) -> World:
    world = new_world_with_policy(policy, nodes)
    run_rounds(world, 5)
    assert world.status.phase == "Running"
    return world


def fail_rank(world: World, code: int = 7, line: str = "ValueError: bad label") -> None:
    world.nodes[1].ranks[0].end(world.now, code, None, line)


def restart_records(status: Status) -> list[tuple[int, str, str]]:
    history = status.restarts.history if status.restarts is not None else ()
    return [(record.attempt, record.reason, record.counts_as) for record in history]


@pytest.mark.parametrize("ends_at", [0.4, None])
def test_the_time_of_a_restart_is_known_even_if_no_report_shows_all_ranks_running(ends_at: float | None) -> None:
    record = RestartRecord(
        attempt=1,
        reason="RankFailed",
        message="Rank 1 on digits-1 failed",
        counts_as="Failure",
        at=format_timestamp_milliseconds(START - 1.5),
    )
    previous = Status(attempt=2, phase="Starting", restarts=NO_RESTARTS.model_copy(update={"history": (record,)}))
    last_rank = rank(1) if ends_at is None else exited_rank(1, ends_at, exit_code=7)
    nodes = []
    for node in (running_node(0, rank(0)), running_node(1, last_rank)):
        assert node.agent is not None
        report = replace(node.agent.report, attempt=2)
        nodes.append(replace(node, agent=replace(node.agent, report=report)))

    status = compute_status(job(2, 1), previous, facts(*nodes), START + 1.0)

    assert status.restarts is not None
    assert status.restarts.history[0].seconds_lost == 1.5


def test_a_failed_rank_restarts_all_ranks_in_the_same_pods() -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    fail_rank(world)
    run_rounds(world, EVENT_ROUNDS)

    assert [node.started_attempts for node in world.nodes] == [[1, 2], [1, 2]]
    assert [node.process.replacement for node in world.nodes] == [0, 0]
    status = world.status
    assert (status.phase, status.attempt) == ("Running", 2)
    assert restart_records(status) == [(1, "RankFailed", "Failure")]
    assert status.restarts is not None
    (record,) = status.restarts.history
    assert record.message.startswith("Rank 2 on digits-1 failed with exit code 7: ValueError: bad label")
    assert (record.rank, record.node, record.replaced_pods) == (2, 1, 0)


def test_the_status_has_the_next_attempt_before_any_agent_starts_it() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    fail_rank(world)
    phases: list[tuple[str, int]] = []
    for _ in range(EVENT_ROUNDS):
        run_rounds(world)
        assert all(node.attempt <= world.status.attempt for node in world.nodes)
        phases.append((world.status.phase, world.status.attempt))
    assert list(dict.fromkeys(phases)) == [("Stopping", 1), ("Restarting", 2), ("Starting", 2), ("Running", 2)]


def test_a_job_fails_after_max_restarts() -> None:
    world = start_world(FailurePolicy(max_restarts=2))
    for _ in range(3):
        fail_rank(world)
        run_rounds(world, EVENT_ROUNDS)
        world.now += 60
    run_rounds(world, 3)

    assert world.status.attempt == 3
    assert world.status.phase == "Failed"
    assert world.status.message.endswith("not restarted: failurePolicy.maxRestarts (2) is used up")


def test_failures_before_the_window_do_not_count() -> None:
    world = start_world(FailurePolicy(max_restarts=1, window_seconds=100))
    for _ in range(3):
        fail_rank(world)
        run_rounds(world, EVENT_ROUNDS)
        world.now += 101
    assert (world.status.phase, world.status.attempt) == ("Running", 4)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (2, "train.py: error: unrecognized arguments: --epoch"),
        (1, "ModuleNotFoundError: No module named 'tranformers'"),
        (1, "SyntaxError: invalid syntax"),
    ],
)
def test_an_error_that_a_restart_would_repeat_fails_the_job(code: int, line: str) -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    fail_rank(world, code, line)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Failed", 1)
    assert world.status.message.endswith("not restarted: a restart would give the same error")


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
    world = start_world(FailurePolicy(max_restarts=limit, rules=RULES))
    fail_rank(world, code)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == phase
    assert [kind for _, _, kind in restart_records(world.status)] == ([] if counts_as is None else [counts_as])


def test_only_the_evicted_pod_is_replaced() -> None:
    world = start_world(FailurePolicy(max_restarts=0))
    node = world.nodes[1]
    node.exit(world.now, None, 9)
    node.process = replace(node.process, problem=Problem("Evicted", "node-b evicted it: low on memory"))
    run_rounds(world, EVENT_ROUNDS)

    assert [node.process.replacement for node in world.nodes] == [0, 1]
    assert world.nodes[0].started_attempts == [1, 2]
    assert world.nodes[1].started_attempts[-1] == 2
    assert world.status.phase == "Running"
    assert restart_records(world.status) == [(1, "Evicted", "Disruption")]
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].replaced_pods == 1


def test_only_the_deleted_pod_is_replaced() -> None:
    world = start_world(FailurePolicy(max_restarts=0))
    world.nodes[0].delete(world.now, 30.0)
    run_rounds(world, EVENT_ROUNDS)
    assert [node.process.replacement for node in world.nodes] == [1, 0]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def drain(world: World, number: int, reason: str = "Evicted") -> None:
    """Delete the node's pod. Its agent gets no SIGTERM yet, because a preStop hook runs."""
    node = world.nodes[number]
    node.process = replace(
        node.process,
        is_terminating=True,
        deletion_requested_at=world.now,
        deletion_deadline=world.now + 30,
        problem=Problem(reason, "the pod is being deleted"),
    )


@pytest.mark.parametrize("reason", ["Evicted", "Preempted", "PodDeleted", "NodeLost"])
def test_a_deletion_ends_the_attempt_before_the_pod_has_terminated(reason: str) -> None:
    world = start_world(FailurePolicy(max_restarts=0))
    drain(world, 1, reason)
    run_rounds(world, EVENT_ROUNDS)

    assert [node.process.replacement for node in world.nodes] == [0, 1]
    assert [node.started_attempts[-1] for node in world.nodes] == [2, 2]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert restart_records(world.status) == [(1, reason, "Disruption")]
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].replaced_pods == 1


def test_a_deletion_fails_a_job_without_disruptions_left() -> None:
    world = start_world(FailurePolicy(max_disruptions=0))
    drain(world, 0)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Failed"
    assert [entry.reason for entry in world.status.conditions if entry.type == "Failed"] == ["Evicted"]


def test_a_deletion_by_muster_does_not_end_the_attempt() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    node = world.nodes[1]
    node.process = replace(node.process, is_terminating=True, deletion_requested_at=world.now)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)


def test_an_attempt_does_not_start_in_a_pod_that_is_being_deleted() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    fail_rank(world)
    run_rounds(world, 2)
    drain(world, 0)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Running"
    assert world.nodes[0].process.replacement == 1
    assert world.nodes[0].started_attempts == [1, world.status.attempt]


def test_the_restart_scope_pods_replaces_all_pods() -> None:
    world = start_world(FailurePolicy(max_restarts=1, restart_scope="Pods"))
    fail_rank(world)
    run_rounds(world, EVENT_ROUNDS)
    assert [node.process.replacement for node in world.nodes] == [1, 1]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_the_backoff_increases_with_quick_failures() -> None:
    world = start_world(FailurePolicy(max_restarts=9))
    waits = []
    for _ in range(4):
        fail_rank(world)
        failed_at = world.now
        attempt = world.status.attempt
        while world.nodes[0].attempt == attempt:
            run_rounds(world)
        waits.append(round(world.now - failed_at))
        run_rounds(world, 3)
    assert waits == sorted(waits)
    assert waits[0] <= 1
    assert 7 <= waits[-1] <= 10


def test_a_late_report_of_the_first_failure_may_restart_the_job() -> None:
    rule = FailureRule(action="Fail", exit_codes=(64,))
    world = start_world(FailurePolicy(max_restarts=3, rules=(rule,)))
    # Rank 2 is killed first. Its node reports one round later than rank 0, which failed because of rank 2.
    world.nodes[1].ranks[0].end(world.now, None, 11)
    world.nodes[1].is_frozen = True
    world.nodes[0].ranks[0].end(world.now + 0.05, 64, None, "lost peer")
    run_rounds(world)
    assert world.status.message.endswith("not restarted: failurePolicy.rules[0] says Fail")
    world.nodes[1].is_frozen = False
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Running"
    assert restart_records(world.status) == [(1, "RankKilled", "Failure")]


def test_a_pod_that_was_deleted_while_no_operator_ran_is_replaced_in_an_old_job() -> None:
    world = start_world(FailurePolicy(max_disruptions=1))
    world.now += 86_400
    run_rounds(world)
    world.nodes[1].delete(world.now, 30.0)
    world.restart_operator()
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_a_replacement_has_the_startup_timeout_before_the_gang_is_released() -> None:
    world = start_world(FailurePolicy(max_disruptions=1))
    for node in world.nodes:
        node.process = replace(node.process, scheduled_at=world.now)
    world.now += 3600
    run_rounds(world)
    world.nodes[1].rounds_until_start = 10_000
    world.nodes[1].exit(world.now, None, 9)
    world.nodes[1].process = replace(world.nodes[1].process, problem=Problem("Evicted", "node-b evicted it"))
    run_rounds(world, 8)
    process = world.nodes[1].process
    world.nodes[1].process = replace(process, problem=Problem("Unschedulable", "0/2 nodes are available"))
    run_rounds(world, EVENT_ROUNDS)
    assert world.nodes[0].process.replacement == 0
    assert world.status.placement is None
    assert world.status.phase == "Restarting"


def test_an_evicted_replacement_does_not_replace_the_waiting_pods() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    world.nodes[1].rounds_until_start = 4
    world.nodes[1].exit(world.now, None, 9)
    world.nodes[1].process = replace(world.nodes[1].process, problem=Problem("Evicted", "node-b evicted it"))
    run_rounds(world, 3)
    assert world.status.phase == "Restarting"
    world.nodes[1].process = replace(
        world.nodes[1].process, state=ProcessState.EXITED, ended_at=world.now, problem=Problem("Evicted", "again")
    )
    run_rounds(world, 2 * EVENT_ROUNDS)
    assert world.nodes[0].process.replacement == 0
    assert world.status.phase == "Running"
    assert [kind for _, _, kind in restart_records(world.status)] == ["Disruption", "Disruption"]


def test_ignored_failures_do_not_displace_counted_ones_in_the_history() -> None:
    policy = FailurePolicy(max_restarts=2, window_seconds=10_000_000, rules=(RULES[1],))
    world = start_world(policy)
    for code in (7, *[8] * 40, 7, 7):
        world.now += 60
        fail_rank(world, code)
        run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Failed"
    assert world.status.restarts is not None
    assert (world.status.restarts.failures, len(world.status.restarts.history)) == (2, 32)


@pytest.mark.parametrize(
    ("attempts", "is_restarted"), [((1, 2), False), ((7, 8), False), ((1, 3), True), ((5, 8), True)]
)
def test_only_successive_attempts_count_as_failures_at_the_same_step(
    attempts: tuple[int, ...], *, is_restarted: bool
) -> None:
    record = RestartRecord(
        attempt=1, reason="RankFailed", message="", step=5, counts_as="Failure", at=format_timestamp_milliseconds(T0)
    )
    history = tuple(record.model_copy(update={"attempt": attempt}) for attempt in attempts)
    restarts = NO_RESTARTS.model_copy(update={"history": history})
    previous = Status(attempt=attempts[-1] + 1, start_time=format_timestamp_milliseconds(T0), restarts=restarts)
    world = start_world(FailurePolicy(max_restarts=10))
    end = End(EndKind.RANK, 1, "digits-1", T0 + 1000.0, rank=2, exit_code=7, step=5)
    result = find_restart(world.job, previous, Failure(T0 + 1000.0, (end,)), None)
    assert isinstance(result, Restart) is is_restarted


def test_a_suspended_job_does_not_restart() -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    fail_rank(world)
    apply_event(world, "suspend", 0)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Suspended"
    assert all(node.process.state is ProcessState.MISSING for node in world.nodes)


@settings(max_examples=choose_example_count(60, share=6), deadline=None)
@given(events=EVENT_LISTS)
def test_with_any_events_each_attempt_starts_once_and_the_job_ends(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    check_restarts(events)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(events=EVENT_LISTS)
def test_many_jobs_restart_and_end(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    check_restarts(events)


def check_restarts(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    """Apply the events, which checks each decision. Check the budgets, and that the job ends."""
    policy = FailurePolicy(max_restarts=2, max_disruptions=2)
    world = new_world(failure_policy=policy)
    for event, rounds in events:
        apply_event(world, *event)
        run_rounds(world, rounds)
    for _ in range(6):
        run_to_the_end(world)
        world.now += 30
        if world.status.final_condition is not None:
            break

    assert world.status.final_condition is not None, (world.status.phase, world.status.message)
    restarts = world.status.restarts
    assert restarts is None or (restarts.failures <= 2 and restarts.disruptions <= 2)
    if condition_status(world.status, "Complete") == "True":
        ends = [(node.attempt, rank.exit_code, rank.stopped) for node in world.nodes for rank in node.ranks]
        assert ends == [(world.status.attempt, 0, False)] * 6
    assert world.now >= T0

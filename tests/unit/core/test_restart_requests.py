"""Restarts that a user requests with the annotation."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.status.restarts import RestartRequest
from muster.api.status.status import Status
from muster.core.actions import SendCommand
from muster.core.restarts import RESTART_REQUESTED
from muster.core.status.events import list_new_events
from muster_worker.contract.schema import CommandKind
from support.searches import choose_example_count
from unit.core.builders import job
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import (
    FAULTS,
    HARMLESS_EVENTS,
    apply_event,
    condition_status,
    new_world,
    run_rounds,
    run_to_the_end,
)
from unit.core.test_restarts import fail_rank, restart_records, start_world

ROUNDS = 12


def test_a_request_restarts_the_ranks_in_the_same_pods_without_a_policy() -> None:
    world = start_world()
    world.request = "2026-11-23T13:30:00.123Z"
    before = world.status
    run_rounds(world, ROUNDS)

    assert [node.started_attempts for node in world.nodes] == [[1, 2], [1, 2]]
    assert [node.process.replacement for node in world.nodes] == [0, 0]
    status = world.status
    assert (status.phase, status.attempt) == ("Running", 2)
    assert restart_records(status) == [(1, RESTART_REQUESTED, "Nothing")]
    assert status.restarts is not None
    assert (status.restarts.total, status.restarts.failures, status.restarts.disruptions) == (1, 0, 0)
    assert status.restarts.history[0].seconds_lost is not None
    assert status.restart_request == RestartRequest(value=world.request)
    (restarting,) = [event for event in list_new_events(before, status) if event.reason == "Restarting"]
    assert (restarting.type, restarting.message) == ("Normal", "A user has requested a restart; attempt 2 follows")


def test_the_status_has_the_request_before_a_rank_is_stopped_and_ranks_get_their_grace_period() -> None:
    world = start_world()
    world.request = "now"
    actions = world.run_round()
    assert world.status.phase == "Stopping"
    assert world.status.message.startswith("A user has requested a restart; attempt 2 follows; ")
    assert world.status.is_stopping_for_restart
    commands = [action.command for action in actions if isinstance(action, SendCommand)]
    assert [(command.kind, command.grace_seconds) for command in commands] == [(CommandKind.STOP, 10.0)]


def test_each_new_value_restarts_the_job_once() -> None:
    world = start_world()
    for request, attempt in (("a", 2), ("a", 2), (None, 2), ("a", 2), ("b", 3), ("a", 4)):
        world.request = request
        run_rounds(world, ROUNDS)
        assert (world.status.phase, world.status.attempt) == ("Running", attempt)


@pytest.mark.parametrize("fails", [False, True])
def test_many_requests_restart_a_job_at_most_once_a_second(fails: bool) -> None:  # noqa: FBT001 - a row of the table
    world = start_world(FailurePolicy(max_restarts=3))
    for number in range(100):
        world.request = str(number)
        for node in world.nodes:
            for rank in node.ranks if fails else ():
                rank.end(world.now, 7, None, "ValueError: bad label")
        run_rounds(world)
    # 100 rounds take 10 s. Without the limit there are 33 restarts.
    assert world.status.restarts is not None
    assert 8 <= world.status.restarts.total <= 12
    run_rounds(world, ROUNDS)
    assert world.status.phase in ("Running", "Restarting")


def test_ranks_that_fail_while_their_peers_are_stopped_do_not_fail_the_job() -> None:
    world = start_world()
    world.request = "now"
    run_rounds(world)
    world.nodes[1].ranks[0].end(world.now, 1, None, "Connection reset by peer")
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert restart_records(world.status) == [(1, RESTART_REQUESTED, "Nothing")]
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].message == "A user has requested a restart"


def test_a_failure_while_the_ranks_are_stopped_is_in_the_record() -> None:
    world = start_world()
    world.request = "now"
    run_rounds(world)
    assert world.status.is_stopping_for_restart
    world.nodes[1].ranks[0].end(world.now, 7, None, "OSError: no space left on device")
    run_rounds(world, ROUNDS)
    assert world.status.restarts is not None
    (record,) = world.status.restarts.history
    assert record.message.startswith(
        "A user has requested a restart; while the ranks stopped: Rank 2 on digits-1 failed with exit code 7: OSError:"
    )
    assert (record.reason, record.counts_as, record.rank) == (RESTART_REQUESTED, "Nothing", None)


def test_a_failure_before_the_request_fails_the_job() -> None:
    world = start_world()
    fail_rank(world)
    world.request = "now"
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Failed", 1)


def test_a_restart_after_a_failure_also_fulfils_the_request() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    fail_rank(world)
    world.request = "now"
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert restart_records(world.status) == [(1, "RankFailed", "Failure")]


@pytest.mark.parametrize("suspends_first", [True, False])
def test_a_resume_also_fulfils_the_request(suspends_first: bool) -> None:  # noqa: FBT001 - a row of the table
    world = start_world()
    if suspends_first:
        apply_event(world, "suspend", 0)
        run_rounds(world, ROUNDS)
    world.request = "now"
    run_rounds(world)
    apply_event(world, "suspend", 0)
    run_rounds(world, ROUNDS)
    assert condition_status(world.status, "Suspended") == "True"
    assert not world.status.is_stopping_for_restart
    apply_event(world, "resume", 0)
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert restart_records(world.status) == []


def test_after_a_resume_the_message_does_not_name_an_earlier_restart() -> None:
    world = start_world()
    world.request = "now"
    run_rounds(world, ROUNDS)
    apply_event(world, "suspend", 0)
    run_rounds(world, ROUNDS)
    apply_event(world, "resume", 0)
    messages = []
    while world.status.phase != "Running":
        run_rounds(world)
        messages.append(world.status.message)
    assert world.status.attempt == 3
    assert "0 of 2 nodes are ready: digits-0 and digits-1 do not exist yet" in messages
    assert not [message for message in messages if "requested" in message]


def test_an_annotation_from_the_creation_of_the_job_does_not_request_a_restart() -> None:
    plain = job(2, 2)
    world = World(plain, [SimulatedNode(number, 2) for number in range(2)], request="copied from another job")
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)


def test_a_request_does_not_restart_an_ended_job() -> None:
    world = start_world()
    run_to_the_end(world)
    before = world.status
    world.request = "now"
    run_rounds(world, ROUNDS)
    assert world.status == before


def test_a_cleared_status_does_not_repeat_the_request() -> None:
    world = start_world()
    world.request = "now"
    run_rounds(world, ROUNDS)
    world.status = Status()
    run_rounds(world, ROUNDS)
    assert all(node.started_attempts == [1, 2] for node in world.nodes)
    assert world.status.restart_request == RestartRequest(value="now")


def test_a_pod_that_is_lost_while_the_ranks_are_stopped_is_replaced() -> None:
    world = start_world()
    world.request = "now"
    run_rounds(world)
    world.nodes[0].delete(world.now, 30.0)
    run_rounds(world, ROUNDS)
    assert [node.process.replacement for node in world.nodes] == [1, 0]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_the_restart_scope_pods_replaces_all_pods() -> None:
    world = start_world(FailurePolicy(max_restarts=0, restart_scope="Pods"))
    world.request = "now"
    run_rounds(world, ROUNDS)
    assert [node.process.replacement for node in world.nodes] == [1, 1]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_requests_do_not_increase_the_backoff_after_a_failure() -> None:
    world = start_world(FailurePolicy(max_restarts=1))
    for request in "abc":
        world.request = request
        run_rounds(world, ROUNDS)
    failed_at = world.now
    fail_rank(world)
    while world.nodes[0].attempt == 4:
        run_rounds(world)
    assert world.now - failed_at <= 1.0


@pytest.mark.parametrize("are_ready", [True, False])
def test_a_request_ends_the_backoff_after_failures(are_ready: bool) -> None:  # noqa: FBT001 - a row of the table
    world = start_world(FailurePolicy(max_restarts=9))
    for _ in range(5):
        fail_rank(world)
        attempt = world.status.attempt
        run_rounds(world, 3)
        while world.status.phase == "Restarting" and attempt < 5:
            run_rounds(world)
        run_rounds(world, 3 if attempt < 5 else 0)
    assert (world.status.phase, world.status.attempt) == ("Restarting", 6)
    if not are_ready:
        world.nodes[0].rounds_until_start = 3
        world.nodes[0].delete(world.now, 30.0)
    world.request = "now"
    run_rounds(world, ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 6)
    assert restart_records(world.status)[-1] == (5, "RankFailed", "Failure")


@pytest.mark.parametrize("killed_after", range(12))
def test_a_job_restarts_once_although_the_operator_is_killed_at_any_time(killed_after: int) -> None:
    world = start_world()
    world.request = "now"
    for round_number in range(ROUNDS):
        run_rounds(world, applied=0 if round_number == killed_after else None)
    run_rounds(world, ROUNDS)
    assert [node.started_attempts for node in world.nodes] == [[1, 2], [1, 2]]
    assert restart_records(world.status) == [(1, RESTART_REQUESTED, "Nothing")]


REQUEST_EVENTS = st.tuples(st.just("request"), st.integers(0, 3))
EVENT_LISTS = st.lists(st.tuples(st.one_of(REQUEST_EVENTS, HARMLESS_EVENTS, FAULTS), st.integers(1, 6)), max_size=12)


@settings(max_examples=choose_example_count(60, share=6), deadline=None)
@given(events=EVENT_LISTS)
def test_with_any_events_each_request_restarts_at_most_once_and_the_job_ends(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    check_requests(events)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(events=EVENT_LISTS)
def test_many_requests_restart_at_most_once(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    check_requests(events)


def check_requests(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    """Apply the events, which checks each decision. Check that each request restarts at most once, and the end."""
    world, requests = new_world(failure_policy=FailurePolicy(max_restarts=2, max_disruptions=2)), 0
    for (kind, value), rounds in events:
        if kind == "request":
            requests += world.request != str(value)
            world.request = str(value)
        else:
            apply_event(world, kind, value)
        run_rounds(world, rounds)
    for _ in range(6):
        run_to_the_end(world)
        world.now += 30
        if world.status.final_condition is not None:
            break

    assert world.status.final_condition is not None, (world.status.phase, world.status.message)
    assert [reason for _, reason, _ in restart_records(world.status)].count(RESTART_REQUESTED) <= requests

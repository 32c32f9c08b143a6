"""Restarts that a user requests with the annotation, in simulated worlds whose agents obey."""

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
from support.searches import examples
from unit.core.builders import job
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import HARMFUL, HARMLESS, condition, finish, happen, live, new_world

TURNS = 12


def started(policy: FailurePolicy | None = None) -> World:
    plain = job(2, 2)
    spec = plain.spec.model_copy(update={"failure_policy": policy})
    current = World(plain.model_copy(update={"spec": spec}), [SimulatedNode(number, 2) for number in range(2)])
    live(current, 5)
    assert current.status.phase == "Running"
    return current


def reasons(status: Status) -> list[tuple[int, str, str]]:
    history = status.restarts.history if status.restarts is not None else ()
    return [(record.attempt, record.reason, record.counts_as) for record in history]


def test_a_request_starts_the_ranks_again_in_the_same_pods_without_a_policy() -> None:
    current = started()
    current.request = "2026-11-23T13:30:00.123Z"
    before = current.status
    live(current, TURNS)

    assert [node.begun for node in current.nodes] == [[1, 2], [1, 2]]
    assert [node.process.replacement for node in current.nodes] == [0, 0]
    status = current.status
    assert (status.phase, status.attempt) == ("Running", 2)
    assert reasons(status) == [(1, RESTART_REQUESTED, "Nothing")]
    assert status.restarts is not None
    assert (status.restarts.total, status.restarts.failures, status.restarts.disruptions) == (1, 0, 0)
    assert status.restarts.history[0].seconds_lost is not None
    assert status.restart_request == RestartRequest(value=current.request)
    (restarting,) = [event for event in list_new_events(before, status) if event.reason == "Restarting"]
    assert (restarting.type, restarting.message) == ("Normal", "A user has requested a restart; attempt 2 follows")


def test_the_request_is_in_the_status_before_a_rank_is_stopped_and_ranks_get_their_grace_period() -> None:
    current = started()
    current.request = "now"
    actions = current.turn()
    assert current.status.phase == "Stopping"
    assert current.status.message.startswith("A user has requested a restart; attempt 2 follows; ")
    assert current.status.is_stopping_for_restart
    commands = [action.command for action in actions if isinstance(action, SendCommand)]
    assert [(command.kind, command.grace_seconds) for command in commands] == [(CommandKind.STOP, 10.0)]


def test_one_value_restarts_once_and_another_value_again() -> None:
    current = started()
    for value, attempt in (("a", 2), ("a", 2), (None, 2), ("a", 2), ("b", 3), ("a", 4)):
        current.request = value
        live(current, TURNS)
        assert (current.status.phase, current.status.attempt) == ("Running", attempt)


@pytest.mark.parametrize("fails", [False, True])
def test_many_requests_restart_a_job_at_most_once_a_second(fails: bool) -> None:  # noqa: FBT001 - a row of the table
    current = started(FailurePolicy(max_restarts=3))
    for number in range(100):
        current.request = str(number)
        for node in current.nodes:
            for rank in node.ranks if fails else ():
                rank.end(current.now, 7, None, "ValueError: bad label")
        live(current)
    # 100 turns take 10 s. Without the limit there are 33 restarts.
    assert current.status.restarts is not None
    assert 8 <= current.status.restarts.total <= 12
    live(current, TURNS)
    assert current.status.phase in ("Running", "Restarting")


def test_ranks_that_fail_because_their_peers_are_stopped_don_t_fail_the_job() -> None:
    current = started()
    current.request = "now"
    live(current)
    current.nodes[1].ranks[0].end(current.now, 1, None, "Connection reset by peer")
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert reasons(current.status) == [(1, RESTART_REQUESTED, "Nothing")]
    assert current.status.restarts is not None
    assert current.status.restarts.history[0].message == "A user has requested a restart"


def test_a_failure_while_the_ranks_are_stopped_is_in_the_record() -> None:
    current = started()
    current.request = "now"
    live(current)
    assert current.status.is_stopping_for_restart
    current.nodes[1].ranks[0].end(current.now, 7, None, "OSError: no space left on device")
    live(current, TURNS)
    assert current.status.restarts is not None
    (record,) = current.status.restarts.history
    assert record.message.startswith(
        "A user has requested a restart; while the ranks stopped: Rank 2 on digits-1 failed with exit code 7: OSError:"
    )
    assert (record.reason, record.counts_as, record.rank) == (RESTART_REQUESTED, "Nothing", None)


def test_a_failure_before_the_request_decides() -> None:
    current = started()
    current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    current.request = "now"
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Failed", 1)


def test_a_restart_after_a_failure_serves_the_request_too() -> None:
    current = started(FailurePolicy(max_restarts=1))
    current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    current.request = "now"
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert reasons(current.status) == [(1, "RankFailed", "Failure")]


@pytest.mark.parametrize("suspends_first", [True, False])
def test_a_resume_serves_the_request(suspends_first: bool) -> None:  # noqa: FBT001 - a row of the table
    current = started()
    if suspends_first:
        happen(current, "suspend", 0)
        live(current, TURNS)
    current.request = "now"
    live(current)
    happen(current, "suspend", 0)
    live(current, TURNS)
    assert condition(current.status, "Suspended") == "True"
    assert not current.status.is_stopping_for_restart
    happen(current, "resume", 0)
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert reasons(current.status) == []


def test_a_value_that_the_job_was_created_with_requests_nothing() -> None:
    plain = job(2, 2)
    current = World(plain, [SimulatedNode(number, 2) for number in range(2)], request="copied from another job")
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 1)


def test_an_ended_job_stays_ended() -> None:
    current = started()
    finish(current)
    before = current.status
    current.request = "now"
    live(current, TURNS)
    assert current.status == before


def test_a_cleared_status_does_not_repeat_the_request() -> None:
    current = started()
    current.request = "now"
    live(current, TURNS)
    current.status = Status()
    live(current, TURNS)
    assert all(node.begun == [1, 2] for node in current.nodes)
    assert current.status.restart_request == RestartRequest(value="now")


def test_a_pod_that_is_lost_while_the_ranks_are_stopped_is_replaced() -> None:
    current = started()
    current.request = "now"
    live(current)
    current.nodes[0].delete(current.now, 30.0)
    live(current, TURNS)
    assert [node.process.replacement for node in current.nodes] == [1, 0]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_scope_pods_replaces_all_pods() -> None:
    current = started(FailurePolicy(max_restarts=0, restart_scope="Pods"))
    current.request = "now"
    live(current, TURNS)
    assert [node.process.replacement for node in current.nodes] == [1, 1]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_requests_don_t_lengthen_the_wait_after_a_failure() -> None:
    current = started(FailurePolicy(max_restarts=1))
    for value in "abc":
        current.request = value
        live(current, TURNS)
    failed_at = current.now
    current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    while current.nodes[0].attempt == 4:
        live(current)
    assert current.now - failed_at <= 1.0


@pytest.mark.parametrize("are_ready", [True, False])
def test_a_request_ends_the_wait_after_failures(are_ready: bool) -> None:  # noqa: FBT001 - a row of the table
    current = started(FailurePolicy(max_restarts=9))
    for _ in range(5):
        current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
        attempt = current.status.attempt
        live(current, 3)
        while current.status.phase == "Restarting" and attempt < 5:
            live(current)
        live(current, 3 if attempt < 5 else 0)
    assert (current.status.phase, current.status.attempt) == ("Restarting", 6)
    if not are_ready:
        current.nodes[0].waits = 3
        current.nodes[0].delete(current.now, 30.0)
    current.request = "now"
    live(current, TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 6)
    assert reasons(current.status)[-1] == (5, "RankFailed", "Failure")


@pytest.mark.parametrize("killed_after", range(12))
def test_an_operator_that_is_killed_at_any_time_restarts_once(killed_after: int) -> None:
    current = started()
    current.request = "now"
    for turn in range(TURNS):
        live(current, applied=0 if turn == killed_after else None)
    live(current, TURNS)
    assert [node.begun for node in current.nodes] == [[1, 2], [1, 2]]
    assert reasons(current.status) == [(1, RESTART_REQUESTED, "Nothing")]


REQUEST = st.tuples(st.just("request"), st.integers(0, 3))
REQUESTS = st.lists(st.tuples(st.one_of(REQUEST, HARMLESS, HARMFUL), st.integers(1, 6)), max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(events=REQUESTS)
def test_whatever_happens_each_request_restarts_at_most_once_and_the_job_ends(
    events: Sequence[tuple[tuple[str, int], int]],
) -> None:
    check_requests(events)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(events=REQUESTS)
def test_many_requests_restart_at_most_once(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    check_requests(events)


def check_requests(events: Sequence[tuple[tuple[str, int], int]]) -> None:
    """Live through the events: `live` checks each decision, and the job ends."""
    current, requests = new_world(failure_policy=FailurePolicy(max_restarts=2, max_disruptions=2)), 0
    for (kind, value), turns in events:
        if kind == "request":
            requests += current.request != str(value)
            current.request = str(value)
        else:
            happen(current, kind, value)
        live(current, turns)
    for _ in range(6):
        finish(current)
        current.now += 30
        if current.status.final_condition is not None:
            break

    assert current.status.final_condition is not None, (current.status.phase, current.status.message)
    assert [reason for _, reason, _ in reasons(current.status)].count(RESTART_REQUESTED) <= requests

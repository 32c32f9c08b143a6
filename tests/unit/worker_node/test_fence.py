"""When an agent that is cut off stops its ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.agent.fence import (
    COLLECTOR_SILENT_SECONDS,
    RESUME_SECONDS,
    UNANSWERED_SECONDS,
    Fence,
    select_ping_targets,
)
from muster_worker.contract.ping import PingKind

SECONDS = 45.0


def watched(fence: Fence, since: float, until: float) -> float | None:
    """Check the fence every second; return when it says that the ranks have to stop."""
    now = since
    while now <= until:
        if fence.find_stop_reason(now) is not None:
            return now
        now += 1.0
    return None


@pytest.mark.parametrize(
    ("node", "nodes", "asked"),
    [
        (0, 2, (1,)),
        (1, 2, (0,)),
        (0, 3, (1, 2)),
        (2, 3, (0, 1)),
        (7, 8, (0, 1, 3)),
        (0, 4, (1, 2)),
    ],
)
def test_a_node_asks_its_neighbours_and_one_far_away(node: int, nodes: int, asked: tuple[int, ...]) -> None:
    assert select_ping_targets(node, nodes) == asked


@given(st.integers(2, 10_000), st.data())
def test_a_node_never_asks_itself(nodes: int, data: st.DataObject) -> None:
    node = data.draw(st.integers(0, nodes - 1))
    asked = select_ping_targets(node, nodes)
    assert 1 <= len(asked) <= 3
    assert node not in asked
    assert all(0 <= peer < nodes for peer in asked)


def test_a_node_that_reaches_nothing_stops() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.ALIVE, 2.0)
    fence.record_collector_answer(10.0)
    assert watched(fence, 10.0, 200.0) == 55.0


def test_an_operator_that_is_away_stops_nothing() -> None:
    fence = Fence(SECONDS, 0.0)
    for now in range(0, 600, 3):
        fence.record_peer_answer(1, PingKind.ALIVE, float(now))
        assert watched(fence, float(now), now + 2.0) is None


def test_a_dead_peer_stops_nothing_while_the_collector_answers() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.ALIVE, 1.0)
    for now in range(600):
        fence.record_collector_answer(float(now))
        assert fence.find_stop_reason(float(now)) is None


@pytest.mark.parametrize("answers", [[], [PingKind.SUCCEEDED], [PingKind.ALIVE, PingKind.SUCCEEDED]])
def test_without_a_peer_that_would_answer_silence_means_nothing(answers: list[int]) -> None:
    fence = Fence(SECONDS, 0.0)
    for answer in answers:
        fence.record_peer_answer(1, answer, 1.0)
    assert not fence.is_armed
    assert fence.should_ping(2.0)
    assert watched(fence, 0.0, 600.0) is None


def test_one_peer_that_still_works_is_enough() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.SUCCEEDED, 1.0)
    fence.record_peer_answer(2, PingKind.ALIVE, 1.0)
    assert watched(fence, 0.0, 600.0) == 46.0


def test_a_peer_says_that_the_attempt_is_over() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.ALIVE, 1.0)
    fence.record_collector_answer(10.0)
    fence.record_peer_answer(1, PingKind.ATTEMPT_ENDED, 20.0)
    assert watched(fence, 20.0, 600.0) == 20.0


def test_the_collector_s_own_command_comes_first() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.ATTEMPT_ENDED, 1.0)
    fence.record_collector_answer(1.0)
    assert watched(fence, 1.0, 1.0 + COLLECTOR_SILENT_SECONDS) is None


def test_an_agent_that_was_frozen_asks_before_it_stops() -> None:
    fence = Fence(SECONDS, 0.0)
    fence.record_peer_answer(1, PingKind.ALIVE, 0.0)
    assert fence.find_stop_reason(1.0) is None
    thawed_at = 1000.0
    assert fence.find_stop_reason(thawed_at) is None
    assert fence.should_ping(thawed_at)
    assert watched(fence, thawed_at + 1, thawed_at + 60) == thawed_at + RESUME_SECONDS


def test_the_log_says_once_whether_the_fence_is_armed() -> None:
    armed, alone = Fence(SECONDS, 0.0), Fence(SECONDS, 0.0)
    assert armed.describe_change(UNANSWERED_SECONDS) is None
    armed.record_peer_answer(1, PingKind.ALIVE, 30.0)
    lines = [fence.describe_change(UNANSWERED_SECONDS + 1 + again) for fence in (armed, alone) for again in range(2)]
    assert lines == [
        "other nodes answer: without contact for 45 s this node stops its ranks",
        None,
        "no other node answers over UDP: this node does not stop its ranks if it is cut off",
        None,
    ]


@given(
    seconds=st.floats(30, 3600),
    contacts=st.lists(st.tuples(st.floats(0, 5000), st.sampled_from(("collector", 1, 2)))),
    until=st.integers(0, 5000),
)
def test_a_fence_falls_only_after_its_time_without_contact(
    seconds: float, contacts: list[tuple[float, str | int]], until: int
) -> None:
    fence = Fence(seconds, 0.0)
    last = 0.0
    for at, source in sorted(contacts, key=lambda contact: contact[0]):
        if at > until:
            break
        last = at
        if isinstance(source, int):
            fence.record_peer_answer(source, PingKind.ALIVE, at)
        else:
            fence.record_collector_answer(at)
    fence.find_stop_reason(max(0.0, until - 1.0))
    fallen = fence.find_stop_reason(float(until)) is not None
    assert not fallen or (fence.is_armed and until - last >= seconds)

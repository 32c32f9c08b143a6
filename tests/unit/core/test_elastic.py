"""With how many nodes, and with which, an elastic job goes on."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.elastic import Elastic
from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.queue import Queue
from muster.api.status.elastic import ElasticStatus
from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Status
from muster.api.timestamps import parse_timestamp
from muster.core.elastic import ResizeInput, choose_elastic_members, find_growth_time, find_resize
from muster.core.facts import NodeFacts, ProcessState
from muster.core.gang_release import find_next_release_time
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.members import parse_members, set_node_count
from muster.core.outcome import Verdict
from muster.core.restarts import RESIZED
from muster.core.status.events import list_past_events
from support.searches import examples
from unit.core.builders import START, facts, missing_node, ready_node
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import asked, live, lose_machines
from unit.core.test_restarts import EVENT_TURNS, records
from unit.core.test_restarts import world as world_of_fixed_size
from unit.core.test_spares import (
    FIRST,
    RESTARTING,
    RESUMED,
    broken,
    cut_off,
    exited,
    pending,
    scheduled,
    terminating,
    unheard,
)

POLICY = FailurePolicy(max_restarts=20, max_disruptions=20)
EARLY, LATE = 1_763_697_906.0, 1_763_699_000.0
ELASTIC = Elastic(min_nodes=1, max_nodes=4, resize_after_seconds=60, grow_after_seconds=300)


@pytest.mark.parametrize(
    ("previous", "last", "count", "nodes", "now", "expected"),
    [
        (FIRST, None, 3, (missing_node(0), missing_node(1), missing_node(2), missing_node(3)), LATE, (0, 1, 2)),
        # The first start and the start after a suspension wait for all nodes.
        (FIRST, (0, 1), 3, (ready_node(0), ready_node(1), pending(2), missing_node(3)), LATE, (0, 1, 2)),
        (RESUMED, (0, 2), 3, (ready_node(0), pending(1), ready_node(2), missing_node(3)), LATE, (0, 2, 1)),
        # A restart waits for a node for some time, and then goes on without it.
        (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (0, 1, 2)),
        (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), LATE, (0, 2)),
        (RESTARTING, (0, 1, 2), 3, (missing_node(0), ready_node(1), ready_node(2), missing_node(3)), LATE, (1, 2)),
        (RESTARTING, (0, 1, 2), 3, (ready_node(0), broken(1), terminating(2), missing_node(3)), LATE, (0,)),
        (RESTARTING, (0, 1, 2), 3, (exited(0), pending(1), scheduled(2), missing_node(3)), LATE, (0, 1, 2)),
        # It doesn't wait again for a node that was missing before.
        (RESTARTING, (0, 2), 3, (ready_node(0), pending(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 2), 3, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2, 1)),
        (RESTARTING, (0, 2), 3, (ready_node(0), pending(1), ready_node(2), ready_node(3)), EARLY, (0, 2, 3)),
        # spec.nodes was lowered.
        (RESTARTING, (0, 1, 2), 2, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 1)),
        (RESTARTING, (0, 2, 1), 2, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 1, 2), 2, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 1, 2), 1, (missing_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (2,)),
        # spec.nodes was raised.
        (RESTARTING, (0, 1), 4, (ready_node(0), ready_node(1), ready_node(2), ready_node(3)), EARLY, (0, 1, 2, 3)),
        # Ranks of the last attempt may run.
        (RESTARTING, (0, 1), 2, (cut_off(0), cut_off(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
        (RESTARTING, (0, 1), 3, (cut_off(0), cut_off(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
        (RESTARTING, (0,), 2, (cut_off(0), ready_node(1), ready_node(2), ready_node(3)), LATE, (0,)),
        (RESTARTING, (0, 1, 2), 3, (cut_off(0), cut_off(1), ready_node(2), missing_node(3)), LATE, (2,)),
        (RESTARTING, (0, 1), 1, (unheard(0), ready_node(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
    ],
)
def test_the_next_members(
    previous: Status,
    last: tuple[int, ...] | None,
    count: int,
    nodes: tuple[NodeFacts, ...],
    now: float,
    expected: tuple[int, ...],
) -> None:
    assert choose_elastic_members(previous, last, heard_size(ELASTIC, count, nodes, now)) == expected


def heard_size(elastic: Elastic, count: int, nodes: Iterable[NodeFacts], now: float) -> ResizeInput:
    """All agents report until now."""
    heard = (
        node if node.agent is None else replace(node, agent=replace(node.agent, last_report_at=now)) for node in nodes
    )
    return ResizeInput(elastic, count, facts(*heard), now)


def world(nodes: int = 3, most: int = 4, least: int = 1, policy: FailurePolicy = POLICY) -> World:
    plain = world_of_fixed_size(policy, nodes)
    elastic = Elastic(min_nodes=least, max_nodes=most, resize_after_seconds=60, grow_after_seconds=300)
    spec = plain.job.spec.model_copy(update={"elastic": elastic})
    slots = [SimulatedNode(number, 2) for number in range(most)]
    return World(plain.job.model_copy(update={"spec": spec}), slots)


def started(nodes: int = 3, most: int = 4, least: int = 1) -> World:
    result = world(nodes, most, least)
    live(result, 5)
    assert result.status.phase == "Running"
    return result


def scale(current: World, nodes: int) -> None:
    current.job = current.job.model_copy(update={"spec": current.job.spec.model_copy(update={"nodes": nodes})})


def run_for(current: World, seconds: float) -> None:
    until = current.now + seconds
    while current.now < until:
        current.now += 4.0
        live(current)


def members(current: World) -> tuple[int, ...] | None:
    return parse_members(current.status.members or "", len(current.nodes))


def test_a_job_starts_with_its_nodes() -> None:
    current = started()
    assert (current.status.members, current.nodes[3].begun) == ("0-2", [])
    assert current.nodes[3].process.state is ProcessState.MISSING
    assert current.status.elastic is not None
    assert (current.status.elastic.followed_nodes, current.status.elastic.message) == (3, "")


def test_a_lost_node_and_its_return() -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 1000
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.members) == ("Restarting", "0-2")
    run_for(current, 70)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 2, "0,2")
    assert [entry.begun for entry in current.nodes] == [[1, 2], [1], [1, 2], []]
    assert [rank.number for rank in current.nodes[2].ranks] == [2, 3]
    assert "runs with 2 of 3 nodes; digits-1 is starting" in current.status.message
    current.nodes[1].waits = 0
    run_for(current, 100)
    assert (current.status.attempt, current.status.members) == (2, "0,2")
    assert "digits-1 joins them after" in current.status.message
    run_for(current, 300)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 3, "0,2,1")
    assert records(current.status) == [(1, "NodeLost", "Disruption"), (2, RESIZED, "Nothing")]
    assert [entry.process.replacement for entry in current.nodes[:3]] == [0, 1, 0]
    texts = [event.message for event in list_past_events(current.status) if event.reason == RESIZED]
    assert texts == ["Attempt 3 has 3 nodes instead of 2"]


def test_a_node_that_returns_soon_is_waited_for() -> None:
    current = started()
    lose_machines(current, 1)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 2, "0-2")


def test_too_few_nodes_wait() -> None:
    current = started(least=3)
    lose_machines(current, 1)
    current.nodes[1].waits = 1000
    run_for(current, 200)
    assert (current.status.phase, current.status.members) == ("Restarting", "0-2")
    current.nodes[1].waits = 0
    run_for(current, 20)
    assert (current.status.phase, current.status.members) == ("Running", "0-2")


def test_the_number_of_nodes_follows_the_spec() -> None:
    current = started()
    scale(current, 2)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 2, "0-1")
    assert not current.nodes[2].is_alive
    assert records(current.status) == [(1, RESIZED, "Nothing")]
    current.now += 40
    scale(current, 4)
    live(current, 2 * EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 3, "0-3")
    assert [entry.begun for entry in current.nodes[:2]] == [[1, 2, 3]] * 2
    assert current.status.restart_request is None


def test_growth_that_fails_again_and_again_waits_longer() -> None:
    current = started()
    starts = []
    for _ in range(3):
        lose_machines(current, 1)
        current.nodes[1].waits = 300
        run_for(current, 70)
        assert len(members(current) or ()) == 2
        current.nodes[1].waits = 0
        shrunk_at, attempt = current.now, current.status.attempt
        while current.status.attempt == attempt or current.status.phase != "Running":
            run_for(current, 4)
        starts.append(current.now - shrunk_at)
        assert len(members(current) or ()) == 3
        current.nodes[1].heal(current.now)
    first, second, third = starts
    assert (first < 320, 500 < second < 640, third > 1100) == (True, True, True)


@pytest.mark.parametrize(
    ("seconds", "growths", "expected"),
    [
        (0, 0, 0.0),
        (0, 1, 60.0),
        (0, 2, 120.0),
        (0, 12, 4 * 3600.0),
        (5, 0, 5.0),
        (5, 1, 60.0),
        (600, 0, 600.0),
        (600, 1, 1200.0),
        (600, 12, 4 * 3600.0),
        (86_400, 1, 86_400.0),
    ],
)
def test_the_wait_before_a_growth(seconds: int, growths: int, expected: float) -> None:
    at = "2025-11-21T04:05:06Z"
    resized = RestartRecord(attempt=1, reason=RESIZED, message="", counts_as="Nothing", at=at)
    history = tuple(resized.model_copy(update={"attempt": number + 1}) for number in range(growths))
    lost = resized.model_copy(update={"attempt": growths + 1, "reason": "PodFailed"})
    restarts = NO_RESTARTS.model_copy(update={"history": (*history, lost)})
    previous = RESTARTING.model_copy(
        update={"attempt": growths + 2, "restarts": restarts, "elastic": ElasticStatus(followed_nodes=3)}
    )
    elastic = Elastic(min_nodes=1, max_nodes=3, grow_after_seconds=seconds)
    assert find_growth_time(elastic, previous, 3) - parse_timestamp(at) == expected


def test_suspending_a_smaller_job_and_resuming_it() -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 100_000
    run_for(current, 70)
    assert current.status.members == "0,2"
    current.job = asked(current, suspend=True)
    run_for(current, 60)
    assert current.status.phase == "Suspended"
    current.nodes[1].waits = 0
    current.job = asked(current, suspend=False)
    run_for(current, 60)
    assert (current.status.phase, members(current)) == ("Running", (0, 2, 1))


def test_a_requested_restart_takes_the_nodes_that_are_ready() -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 40
    run_for(current, 70)
    run_for(current, 200)
    assert current.status.members == "0,2"
    current.request = "now"
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 3, "0,2,1")


def test_all_nodes_of_a_smaller_job_that_are_cut_off_are_not_replaced() -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 30
    run_for(current, 80)
    assert current.status.members == "0,2"
    lose_machines(current, 0, 2)
    run_for(current, 200)
    current.restart_operator()
    run_for(current, 400)
    assert current.status.phase == "Restarting"
    assert current.nodes[1].begun == [1]
    assert [entry.process.replacement for entry in current.nodes[:3]] == [0, 1, 0]


@pytest.mark.parametrize("forged", [None, "0-1", "0", "0-2", "2,0", "1-2", "0-3", "0-999999", "x", "cleared"])
@pytest.mark.parametrize("is_new_leader", [False, True])
def test_no_two_nodes_run_the_same_ranks_if_someone_edits_the_status(
    forged: str | None, *, is_new_leader: bool
) -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 30
    run_for(current, 80)
    assert current.status.members == "0,2"
    current.status = Status() if forged == "cleared" else current.status.model_copy(update={"members": forged})
    if is_new_leader:
        current.restart_operator()
    for _ in range(4 * EVENT_TURNS):
        current.now += 1
        live(current)
        running = [rank.number for entry in current.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running)), running


def test_a_node_that_can_not_start_does_not_keep_others_from_joining() -> None:
    stuck = scheduled(3, "ImagePullBackOff")
    for other, joins in ((scheduled(3), False), (stuck, True), (broken(3), True), (pending(3), True)):
        current = replace(facts(ready_node(0), ready_node(1)), non_members=(ready_node(2), other), desired_nodes=4)
        heard = heard_size(ELASTIC, 4, current.non_members, LATE).facts.nodes
        running = Status(attempt=1, phase="Running", start_time="2025-11-21T04:05:05Z")
        why = find_resize(world(4).job, running, replace(current, non_members=heard), LATE)
        assert (why is not None) == joins, other


def test_a_node_that_is_ready_late_starts_in_place_of_one_without_room() -> None:
    asked = world(least=2).job
    due = EARLY + asked.spec.startup_timeout_seconds
    late = heard_size(ELASTIC, 3, (ready_node(0), pending(1), ready_node(2), missing_node(3)), due + 500).facts
    current = infer(asked, RESTARTING.model_copy(update={"members": "0-2"}), late, due + 500)
    assert [node.node for node in current.nodes] == [0, 2]
    outcome = judge(set_node_count(asked, current), RESTARTING, current, due + 500)
    assert outcome.verdict is Verdict.UNDECIDED


def test_a_queue_that_places_only_min_nodes_together_does_not_deadlock() -> None:
    for least, releases in ((2, True), (3, False)):
        plain = world(least=least).job
        asked = plain.model_copy(update={"spec": plain.spec.model_copy(update={"queue": Queue(volcano="a")})})
        current = infer(asked, FIRST, facts(scheduled(0), scheduled(1), pending(2), missing_node(3)), START)
        assert (next_release_at(with_members(asked, current), current, START) is not None) == releases


_KINDS = (ready_node, scheduled, pending, missing_node, unheard, cut_off, terminating, broken, exited)


@given(
    previous=st.sampled_from((FIRST, RESTARTING, RESUMED)),
    kinds=st.lists(st.sampled_from(_KINDS), min_size=4, max_size=4),
    now=st.sampled_from((EARLY, LATE)),
    data=st.data(),
)
@settings(max_examples=examples(600))
def test_the_choice_is_stable_and_within_the_limits(
    previous: Status, kinds: list[Callable[[int], NodeFacts]], now: float, data: st.DataObject
) -> None:
    nodes = tuple(kind(number) for number, kind in enumerate(kinds))
    least = data.draw(st.integers(1, 4))
    count = data.draw(st.integers(least, 4))
    elastic = Elastic(min_nodes=least, max_nodes=4, resize_after_seconds=60)
    last = tuple(data.draw(st.permutations(range(4))))[: data.draw(st.integers(least, 4))]
    size = heard_size(elastic, count, nodes, now)
    chosen = choose_elastic_members(previous, last, size)
    assert len(set(chosen)) == len(chosen)
    assert least <= len(chosen) <= 4
    assert choose_elastic_members(previous, chosen, size) == chosen
    if previous.attempt > 0 and any(kinds[member] is unheard for member in last):
        assert chosen == last
    elif chosen != last:
        assert len(chosen) <= count
    kept = [member for member in last if member in chosen]
    assert [member for member in chosen if member in kept] == kept or previous is FIRST

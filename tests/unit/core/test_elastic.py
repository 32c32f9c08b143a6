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
from unit.core.test_any_operator import lose_machines, run_rounds, with_suspend
from unit.core.test_restarts import EVENT_ROUNDS, new_world_with_policy, restart_records
from unit.core.test_spares import (
    FIRST,
    RESTARTING,
    RESUMED,
    exited_node,
    node_with_problem,
    pending_node,
    scheduled_node,
    silent_node,
    terminating_node,
    unreachable_node,
)

POLICY = FailurePolicy(max_restarts=20, max_disruptions=20)
EARLY, LATE = 1_763_697_906.0, 1_763_699_000.0
ELASTIC = Elastic(min_nodes=1, max_nodes=4, resize_after_seconds=60, grow_after_seconds=300)


@pytest.mark.parametrize(
    ("previous", "last", "count", "nodes", "now", "expected"),
    [
        (FIRST, None, 3, (missing_node(0), missing_node(1), missing_node(2), missing_node(3)), LATE, (0, 1, 2)),
        # The first start and the start after a suspension wait for all nodes.
        (FIRST, (0, 1), 3, (ready_node(0), ready_node(1), pending_node(2), missing_node(3)), LATE, (0, 1, 2)),
        (RESUMED, (0, 2), 3, (ready_node(0), pending_node(1), ready_node(2), missing_node(3)), LATE, (0, 2, 1)),
        # A restart waits for a node for some time, and then goes on without it.
        (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (0, 1, 2)),
        (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), LATE, (0, 2)),
        (RESTARTING, (0, 1, 2), 3, (missing_node(0), ready_node(1), ready_node(2), missing_node(3)), LATE, (1, 2)),
        (
            RESTARTING,
            (0, 1, 2),
            3,
            (ready_node(0), node_with_problem(1), terminating_node(2), missing_node(3)),
            LATE,
            (0,),
        ),
        (
            RESTARTING,
            (0, 1, 2),
            3,
            (exited_node(0), pending_node(1), scheduled_node(2), missing_node(3)),
            LATE,
            (0, 1, 2),
        ),
        # It doesn't wait again for a node that was missing before.
        (RESTARTING, (0, 2), 3, (ready_node(0), pending_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 2), 3, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2, 1)),
        (RESTARTING, (0, 2), 3, (ready_node(0), pending_node(1), ready_node(2), ready_node(3)), EARLY, (0, 2, 3)),
        # spec.nodes was lowered.
        (RESTARTING, (0, 1, 2), 2, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 1)),
        (RESTARTING, (0, 2, 1), 2, (ready_node(0), ready_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 1, 2), 2, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (0, 2)),
        (RESTARTING, (0, 1, 2), 1, (missing_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (2,)),
        # spec.nodes was raised.
        (RESTARTING, (0, 1), 4, (ready_node(0), ready_node(1), ready_node(2), ready_node(3)), EARLY, (0, 1, 2, 3)),
        # Ranks of the last attempt may run.
        (RESTARTING, (0, 1), 2, (unreachable_node(0), unreachable_node(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
        (RESTARTING, (0, 1), 3, (unreachable_node(0), unreachable_node(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
        (RESTARTING, (0,), 2, (unreachable_node(0), ready_node(1), ready_node(2), ready_node(3)), LATE, (0,)),
        (
            RESTARTING,
            (0, 1, 2),
            3,
            (unreachable_node(0), unreachable_node(1), ready_node(2), missing_node(3)),
            LATE,
            (2,),
        ),
        (RESTARTING, (0, 1), 1, (silent_node(0), ready_node(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
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


def new_elastic_world(nodes: int = 3, most: int = 4, least: int = 1, policy: FailurePolicy = POLICY) -> World:
    plain = new_world_with_policy(policy, nodes)
    elastic = Elastic(min_nodes=least, max_nodes=most, resize_after_seconds=60, grow_after_seconds=300)
    spec = plain.job.spec.model_copy(update={"elastic": elastic})
    slots = [SimulatedNode(number, 2) for number in range(most)]
    return World(plain.job.model_copy(update={"spec": spec}), slots)


def start_world(nodes: int = 3, most: int = 4, least: int = 1) -> World:
    result = new_elastic_world(nodes, most, least)
    run_rounds(result, 5)
    assert result.status.phase == "Running"
    return result


def scale_to(world: World, nodes: int) -> None:
    world.job = world.job.model_copy(update={"spec": world.job.spec.model_copy(update={"nodes": nodes})})


def run_for(world: World, seconds: float) -> None:
    until = world.now + seconds
    while world.now < until:
        world.now += 4.0
        run_rounds(world)


def current_members(world: World) -> tuple[int, ...] | None:
    return parse_members(world.status.members or "", len(world.nodes))


def test_a_job_starts_with_its_nodes() -> None:
    world = start_world()
    assert (world.status.members, world.nodes[3].started_attempts) == ("0-2", [])
    assert world.nodes[3].process.state is ProcessState.MISSING
    assert world.status.elastic is not None
    assert (world.status.elastic.followed_nodes, world.status.elastic.message) == (3, "")


def test_a_lost_node_and_its_return() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 1000
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.members) == ("Restarting", "0-2")
    run_for(world, 70)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 2, "0,2")
    assert [entry.started_attempts for entry in world.nodes] == [[1, 2], [1], [1, 2], []]
    assert [rank.number for rank in world.nodes[2].ranks] == [2, 3]
    assert "runs with 2 of 3 nodes; digits-1 is starting" in world.status.message
    world.nodes[1].rounds_until_start = 0
    run_for(world, 100)
    assert (world.status.attempt, world.status.members) == (2, "0,2")
    assert "digits-1 joins them after" in world.status.message
    run_for(world, 300)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 3, "0,2,1")
    assert restart_records(world.status) == [(1, "NodeLost", "Disruption"), (2, RESIZED, "Nothing")]
    assert [entry.process.replacement for entry in world.nodes[:3]] == [0, 1, 0]
    texts = [event.message for event in past_events(world.status) if event.reason == RESIZED]
    assert texts == ["Attempt 3 has 3 nodes instead of 2"]


def test_a_node_that_returns_soon_is_waited_for() -> None:
    world = start_world()
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 2, "0-2")


def test_too_few_nodes_wait() -> None:
    world = start_world(least=3)
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 1000
    run_for(world, 200)
    assert (world.status.phase, world.status.members) == ("Restarting", "0-2")
    world.nodes[1].rounds_until_start = 0
    run_for(world, 20)
    assert (world.status.phase, world.status.members) == ("Running", "0-2")


def test_the_number_of_nodes_follows_the_spec() -> None:
    world = start_world()
    scale_to(world, 2)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 2, "0-1")
    assert not world.nodes[2].is_alive
    assert restart_records(world.status) == [(1, RESIZED, "Nothing")]
    world.now += 40
    scale_to(world, 4)
    run_rounds(world, 2 * EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 3, "0-3")
    assert [entry.started_attempts for entry in world.nodes[:2]] == [[1, 2, 3]] * 2
    assert world.status.restart_request is None


def test_growth_that_fails_again_and_again_waits_longer() -> None:
    world = start_world()
    starts = []
    for _ in range(3):
        lose_machines(world, 1)
        world.nodes[1].rounds_until_start = 300
        run_for(world, 70)
        assert len(current_members(world) or ()) == 2
        world.nodes[1].rounds_until_start = 0
        shrunk_at, attempt = world.now, world.status.attempt
        while world.status.attempt == attempt or world.status.phase != "Running":
            run_for(world, 4)
        starts.append(world.now - shrunk_at)
        assert len(current_members(world) or ()) == 3
        world.nodes[1].reconnect(world.now)
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
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 100_000
    run_for(world, 70)
    assert world.status.members == "0,2"
    world.job = with_suspend(world, suspend=True)
    run_for(world, 60)
    assert world.status.phase == "Suspended"
    world.nodes[1].rounds_until_start = 0
    world.job = with_suspend(world, suspend=False)
    run_for(world, 60)
    assert (world.status.phase, current_members(world)) == ("Running", (0, 2, 1))


def test_a_requested_restart_takes_the_nodes_that_are_ready() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 40
    run_for(world, 70)
    run_for(world, 200)
    assert world.status.members == "0,2"
    world.request = "now"
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 3, "0,2,1")


def test_all_nodes_of_a_smaller_job_that_are_cut_off_are_not_replaced() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 30
    run_for(world, 80)
    assert world.status.members == "0,2"
    lose_machines(world, 0, 2)
    run_for(world, 200)
    world.restart_operator()
    run_for(world, 400)
    assert world.status.phase == "Restarting"
    assert world.nodes[1].started_attempts == [1]
    assert [entry.process.replacement for entry in world.nodes[:3]] == [0, 1, 0]


@pytest.mark.parametrize("forged", [None, "0-1", "0", "0-2", "2,0", "1-2", "0-3", "0-999999", "x", "cleared"])
@pytest.mark.parametrize("is_new_leader", [False, True])
def test_no_two_nodes_run_the_same_ranks_if_someone_edits_the_status(
    forged: str | None, *, is_new_leader: bool
) -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 30
    run_for(world, 80)
    assert world.status.members == "0,2"
    world.status = Status() if forged == "cleared" else world.status.model_copy(update={"members": forged})
    if is_new_leader:
        world.restart_operator()
    for _ in range(4 * EVENT_ROUNDS):
        world.now += 1
        run_rounds(world)
        running = [rank.number for entry in world.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running)), running


def test_a_node_that_can_not_start_does_not_keep_others_from_joining() -> None:
    stuck = scheduled_node(3, "ImagePullBackOff")
    for other, joins in (
        (scheduled_node(3), False),
        (stuck, True),
        (node_with_problem(3), True),
        (pending_node(3), True),
    ):
        world = replace(facts(ready_node(0), ready_node(1)), non_members=(ready_node(2), other), desired_nodes=4)
        heard = heard_size(ELASTIC, 4, world.non_members, LATE).facts.nodes
        running = Status(attempt=1, phase="Running", start_time="2025-11-21T04:05:05Z")
        why = find_resize(new_elastic_world(4).job, running, replace(world, non_members=heard), LATE)
        assert (why is not None) == joins, other


def test_a_node_that_is_ready_late_starts_in_place_of_one_without_room() -> None:
    asked = new_elastic_world(least=2).job
    due = EARLY + asked.spec.startup_timeout_seconds
    late = heard_size(ELASTIC, 3, (ready_node(0), pending_node(1), ready_node(2), missing_node(3)), due + 500).facts
    world = infer(asked, RESTARTING.model_copy(update={"members": "0-2"}), late, due + 500)
    assert [node.node for node in world.nodes] == [0, 2]
    outcome = judge(with_members(asked, world), RESTARTING, world, due + 500)
    assert outcome.verdict is Verdict.UNDECIDED


def test_a_queue_that_places_only_min_nodes_together_does_not_deadlock() -> None:
    for least, releases in ((2, True), (3, False)):
        plain = new_elastic_world(least=least).job
        asked = plain.model_copy(update={"spec": plain.spec.model_copy(update={"queue": Queue(volcano="a")})})
        world = infer(
            asked, FIRST, facts(scheduled_node(0), scheduled_node(1), pending_node(2), missing_node(3)), START
        )
        assert (next_release_at(with_members(asked, world), world, START) is not None) == releases


_KINDS = (
    ready_node,
    scheduled_node,
    pending_node,
    missing_node,
    silent_node,
    unreachable_node,
    terminating_node,
    node_with_problem,
    exited_node,
)


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
    if previous.attempt > 0 and any(kinds[member] is silent_node for member in last):
        assert chosen == last
    elif chosen != last:
        assert len(chosen) <= count
    kept = [member for member in last if member in chosen]
    assert [member for member in chosen if member in kept] == kept or previous is FIRST

"""How many nodes an elastic job continues with, and which ones."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.elastic import Elastic
from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.spec.queue import Queue
from muster.api.status.elastic import ElasticStatus
from muster.api.status.restarts import NO_RESTARTS, RestartRecord
from muster.api.status.status import Status
from muster.api.timestamps import parse_timestamp
from muster.core.fact_completion import complete_facts
from muster.core.facts import NodeFacts, ProcessState
from muster.core.gang_release import find_next_release_time
from muster.core.judge import judge
from muster.core.membership.elastic import ResizeInput, choose_elastic_members, explain_resize, find_growth_time
from muster.core.membership.member_text import parse_members
from muster.core.membership.members import set_node_count
from muster.core.outcome import Verdict
from muster.core.restarts import RESIZED
from muster.core.status.events import list_past_events
from support.rows import check_rows
from support.searches import choose_example_count
from unit.core.builders import START, facts, missing_node, ready_node, with_spec
from unit.core.membership.test_spares import (
    FIRST,
    NODE_BUILDERS,
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
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import lose_machines, run_rounds, with_suspend
from unit.core.test_restarts import EVENT_ROUNDS, new_world_with_policy, restart_records

POLICY = FailurePolicy(max_restarts=20, max_disruptions=20)
EARLY, LATE = 1_763_697_906.0, 1_763_699_000.0
ELASTIC = Elastic(min_nodes=1, max_nodes=4, resize_after_seconds=60, grow_after_seconds=300)


CHOOSE_ELASTIC_MEMBERS_ROWS: list[
    tuple[Status, tuple[int, ...] | None, int, tuple[NodeFacts, ...], float, tuple[int, ...]]
] = [
    (FIRST, None, 3, (missing_node(0), missing_node(1), missing_node(2), missing_node(3)), LATE, (0, 1, 2)),
    # The first start and the start after a suspension wait for all nodes.
    (FIRST, (0, 1), 3, (ready_node(0), ready_node(1), pending_node(2), missing_node(3)), LATE, (0, 1, 2)),
    (RESUMED, (0, 2), 3, (ready_node(0), pending_node(1), ready_node(2), missing_node(3)), LATE, (0, 2, 1)),
    # A restart waits for a node for some time, and then continues without it.
    (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), EARLY, (0, 1, 2)),
    (RESTARTING, (0, 1, 2), 3, (ready_node(0), missing_node(1), ready_node(2), missing_node(3)), LATE, (0, 2)),
    (RESTARTING, (0, 1, 2), 3, (missing_node(0), ready_node(1), ready_node(2), missing_node(3)), LATE, (1, 2)),
    (RESTARTING, (0, 1, 2), 3, (ready_node(0), node_with_problem(1), terminating_node(2), missing_node(3)), LATE, (0,)),
    (RESTARTING, (0, 1, 2), 3, (exited_node(0), pending_node(1), scheduled_node(2), missing_node(3)), LATE, (0, 1, 2)),
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
    (RESTARTING, (0, 1, 2), 3, (unreachable_node(0), unreachable_node(1), ready_node(2), missing_node(3)), LATE, (2,)),
    (RESTARTING, (0, 1), 1, (silent_node(0), ready_node(1), ready_node(2), ready_node(3)), LATE, (0, 1)),
]


def test_choose_elastic_members() -> None:
    def check(
        previous: Status,
        last_members: tuple[int, ...] | None,
        spec_nodes: int,
        nodes: tuple[NodeFacts, ...],
        now: float,
        expected: tuple[int, ...],
    ) -> None:
        assert (
            choose_elastic_members(previous, last_members, size_with_reports(ELASTIC, spec_nodes, nodes, now))
            == expected
        )

    check_rows(CHOOSE_ELASTIC_MEMBERS_ROWS, lambda row: check(*row))


def size_with_reports(elastic: Elastic, count: int, nodes: Iterable[NodeFacts], now: float) -> ResizeInput:
    """Return the facts for the choice of members. All agents have reported at `now`."""
    reporting_nodes = (
        node if node.agent is None else replace(node, agent=replace(node.agent, last_report_at=now)) for node in nodes
    )
    return ResizeInput(elastic, count, facts(*reporting_nodes), now)


def new_elastic_world(nodes: int = 3, max_nodes: int = 4, min_nodes: int = 1, policy: FailurePolicy = POLICY) -> World:
    world = new_world_with_policy(policy, nodes)
    elastic = Elastic(min_nodes=min_nodes, max_nodes=max_nodes, resize_after_seconds=60, grow_after_seconds=300)
    slots = [SimulatedNode(number, 2) for number in range(max_nodes)]
    return World(with_spec(world.job, elastic=elastic), slots)


def start_world(nodes: int = 3, max_nodes: int = 4, min_nodes: int = 1) -> World:
    world = new_elastic_world(nodes, max_nodes, min_nodes)
    run_rounds(world, 5)
    assert world.status.phase == "Running"
    return world


def scale_to(world: World, nodes: int) -> None:
    world.job = with_spec(world.job, nodes=nodes)


def run_for(world: World, seconds: float) -> None:
    deadline = world.now + seconds
    while world.now < deadline:
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


def test_a_job_continues_without_a_lost_node_and_with_it_after_its_return() -> None:
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
    texts = [event.message for event in list_past_events(world.status) if event.reason == RESIZED]
    assert texts == ["Attempt 3 has 3 nodes instead of 2"]


def test_a_restart_waits_for_a_node_that_returns_soon() -> None:
    world = start_world()
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 2, "0-2")


def test_a_job_with_fewer_than_min_nodes_waits() -> None:
    world = start_world(min_nodes=3)
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


def test_the_wait_before_growing_increases_after_each_failure() -> None:
    world = start_world()
    waits = []
    for _ in range(3):
        lose_machines(world, 1)
        world.nodes[1].rounds_until_start = 300
        run_for(world, 70)
        assert len(current_members(world) or ()) == 2
        world.nodes[1].rounds_until_start = 0
        shrunk_at, attempt = world.now, world.status.attempt
        while world.status.attempt == attempt or world.status.phase != "Running":
            run_for(world, 4)
        waits.append(world.now - shrunk_at)
        assert len(current_members(world) or ()) == 3
        world.nodes[1].reconnect(world.now)
    first, second, third = waits
    assert (first < 320, 500 < second < 640, third > 1100) == (True, True, True)


@pytest.mark.parametrize(
    ("seconds", "resize_count", "expected"),
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
def test_the_wait_before_growing(seconds: int, resize_count: int, expected: float) -> None:
    at = "2025-11-21T04:05:06Z"
    resized = RestartRecord(attempt=1, reason=RESIZED, message="", counts_as="Nothing", at=at)
    history = tuple(resized.model_copy(update={"attempt": number + 1}) for number in range(resize_count))
    failure_record = resized.model_copy(update={"attempt": resize_count + 1, "reason": "PodFailed"})
    restarts = NO_RESTARTS.model_copy(update={"history": (*history, failure_record)})
    previous = RESTARTING.model_copy(
        update={"attempt": resize_count + 2, "restarts": restarts, "elastic": ElasticStatus(followed_nodes=3)}
    )
    elastic = Elastic(min_nodes=1, max_nodes=3, grow_after_seconds=seconds)
    assert find_growth_time(elastic, previous, 3) - parse_timestamp(at) == expected


def test_a_resumed_job_has_all_its_nodes() -> None:
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


def test_a_requested_restart_includes_all_ready_nodes() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 40
    run_for(world, 70)
    run_for(world, 200)
    assert world.status.members == "0,2"
    world.request = "now"
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 3, "0,2,1")


@pytest.mark.parametrize(
    ("nodes", "ranks", "matches"),
    [((2,), (), True), ((1,), (), False), ((2,), (2,), True), ((2,), (4,), False), ((), (4,), False)],
    ids=str,
)
def test_a_rule_matches_a_node_by_the_number_in_its_pods_name(
    nodes: tuple[int, ...], ranks: tuple[int, ...], *, matches: bool
) -> None:
    rule = FailureRule(action="Fail", exit_codes=(7,), nodes=nodes, ranks=ranks)
    world = new_elastic_world(policy=POLICY.model_copy(update={"rules": (rule,)}))
    run_rounds(world, 5)
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 100_000
    run_for(world, 70)
    assert (world.status.phase, world.status.members) == ("Running", "0,2")
    # Node 2 now has node rank 1, and thus ranks 2 and 3.
    world.nodes[2].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    run_for(world, 70)
    assert world.status.phase == ("Failed" if matches else "Running")
    assert world.status.message.startswith("Rank 2 on digits-2 failed") is matches


def test_the_history_has_the_node_by_the_number_in_its_pods_name() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 100_000
    run_for(world, 70)
    world.nodes[2].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    run_for(world, 70)
    assert world.status.restarts is not None
    record = world.status.restarts.history[1]
    assert (record.reason, record.rank, record.node, record.members) == ("RankFailed", 2, 2, "0,2")


def test_a_smaller_job_whose_nodes_are_all_disconnected_does_not_replace_them() -> None:
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


@pytest.mark.parametrize("edited_members", [None, "0-1", "0", "0-2", "2,0", "1-2", "0-3", "0-999999", "x", "cleared"])
@pytest.mark.parametrize("is_new_leader", [False, True])
def test_no_two_nodes_run_the_same_ranks_after_an_edit_of_the_status(
    edited_members: str | None, *, is_new_leader: bool
) -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 30
    run_for(world, 80)
    assert world.status.members == "0,2"
    world.status = (
        Status() if edited_members == "cleared" else world.status.model_copy(update={"members": edited_members})
    )
    if is_new_leader:
        world.restart_operator()
    for _ in range(4 * EVENT_ROUNDS):
        world.now += 1
        run_rounds(world)
        running = [rank.number for entry in world.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running)), running


def test_a_node_that_can_not_start_does_not_prevent_others_from_joining() -> None:
    blocked_node = scheduled_node(3, "ImagePullBackOff")
    for other, joins in (
        (scheduled_node(3), False),
        (blocked_node, True),
        (node_with_problem(3), True),
        (pending_node(3), True),
    ):
        job_facts = replace(facts(ready_node(0), ready_node(1)), non_members=(ready_node(2), other), desired_nodes=4)
        non_members = size_with_reports(ELASTIC, 4, job_facts.non_members, LATE).facts.nodes
        running = Status(attempt=1, phase="Running", start_time="2025-11-21T04:05:05Z")
        resize = explain_resize(new_elastic_world(4).job, running, replace(job_facts, non_members=non_members), LATE)
        assert (resize is not None) == joins, other


def test_a_late_node_starts_in_place_of_an_unschedulable_one() -> None:
    a_job = new_elastic_world(min_nodes=2).job
    deadline = EARLY + a_job.spec.startup_timeout_seconds
    late_facts = size_with_reports(
        ELASTIC, 3, (ready_node(0), pending_node(1), ready_node(2), missing_node(3)), deadline + 500
    ).facts
    job_facts = complete_facts(a_job, RESTARTING.model_copy(update={"members": "0-2"}), late_facts, deadline + 500)
    assert [node.node for node in job_facts.nodes] == [0, 2]
    outcome = judge(set_node_count(a_job, job_facts), RESTARTING, job_facts, deadline + 500)
    assert outcome.verdict is Verdict.UNDECIDED


def test_an_elastic_gang_is_released_unless_min_nodes_are_scheduled() -> None:
    for min_nodes, releases in ((2, True), (3, False)):
        elastic_job = new_elastic_world(min_nodes=min_nodes).job
        a_job = with_spec(elastic_job, queue=Queue(volcano="a"))
        job_facts = complete_facts(
            a_job, FIRST, facts(scheduled_node(0), scheduled_node(1), pending_node(2), missing_node(3)), START
        )
        assert (find_next_release_time(set_node_count(a_job, job_facts), job_facts, START) is not None) == releases


@given(
    previous=st.sampled_from((FIRST, RESTARTING, RESUMED)),
    builders=st.lists(st.sampled_from(NODE_BUILDERS), min_size=4, max_size=4),
    now=st.sampled_from((EARLY, LATE)),
    data=st.data(),
)
@settings(max_examples=choose_example_count(600, share=12))
def test_the_choice_is_stable_and_within_the_limits(
    previous: Status, builders: list[Callable[[int], NodeFacts]], now: float, data: st.DataObject
) -> None:
    nodes = tuple(build(number) for number, build in enumerate(builders))
    min_nodes = data.draw(st.integers(1, 4))
    spec_nodes = data.draw(st.integers(min_nodes, 4))
    elastic = Elastic(min_nodes=min_nodes, max_nodes=4, resize_after_seconds=60)
    last = tuple(data.draw(st.permutations(range(4))))[: data.draw(st.integers(min_nodes, 4))]
    size = size_with_reports(elastic, spec_nodes, nodes, now)
    chosen = choose_elastic_members(previous, last, size)
    assert len(set(chosen)) == len(chosen)
    assert min_nodes <= len(chosen) <= 4
    assert choose_elastic_members(previous, chosen, size) == chosen
    if previous.attempt > 0 and any(builders[member] is silent_node for member in last):
        assert chosen == last
    elif chosen != last:
        assert len(chosen) <= spec_nodes
    staying = [member for member in last if member in chosen]
    assert [member for member in chosen if member in staying] == staying or previous is FIRST

"""Which spare replaces which node, and when no spare may do so."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.status import Status
from muster.cli.board.restart_lines import format_restarts
from muster.cli.board.spare_line import format_spares
from muster.core.actions import CreateNode, RemoveNode
from muster.core.decide import decide
from muster.core.fact_completion import complete_facts
from muster.core.facts import NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.problems import FETCHING_FILES, LOST_SECONDS, UNSCHEDULABLE
from muster.core.fence import OLD_POD_MAY_RUN
from muster.core.judge import judge
from muster.core.membership.member_text import describe_replaced_members, find_replaced_members, parse_members
from muster.core.membership.non_members import BACKOFF_SECONDS
from muster.core.membership.spares import is_spare_ready, replace_unusable_members
from muster.core.problem import Problem
from muster.core.status.events import SPARE_USED, list_past_events
from muster.core.steps.stragglers import REPLACE_SECONDS
from muster_worker.contract.schema import AgentPhase, AgentProblem
from support.rows import check_rows
from support.searches import choose_example_count
from unit.core.builders import START, agent, facts, missing_node, node, ready_node, with_spec
from unit.core.simulated import SimulatedNode, World
from unit.core.steps.test_hangs import train_for
from unit.core.steps.test_stragglers import REPLACE_POLICY, train_with_busy_times
from unit.core.test_any_operator import EVENT_LISTS, apply_event, lose_machines, run_rounds, run_to_the_end
from unit.core.test_restarts import EVENT_ROUNDS, new_world_with_policy, restart_records

POLICY = FailurePolicy(max_restarts=20, max_disruptions=20)
START_TEXT = "2025-11-21T04:05:05Z"
FIRST = Status()
LOSS_RECORD = RestartRecord(attempt=1, reason="NodeLost", message="lost", counts_as="Disruption", at=START_TEXT)
RESTARTING = Status(
    attempt=2,
    phase="Restarting",
    start_time=START_TEXT,
    restarts=Restarts(total=1, failures=0, disruptions=1, replacement=1, is_pending=True, history=(LOSS_RECORD,)),
)
RESUMED = Status(attempt=1)


def scheduled_node(number: int, problem: str = "") -> NodeFacts:
    """Return a node whose pod is scheduled, and whose containers have not started."""
    node_problem = Problem(problem, "a sentence") if problem else None
    return node(number, process=ProcessFacts(ProcessState.WAITING, 1, scheduled_at=START, problem=node_problem))


def pending_node(number: int) -> NodeFacts:
    problem = Problem(UNSCHEDULABLE, "no room")
    return node(number, process=ProcessFacts(ProcessState.WAITING, 1, problem=problem))


def silent_node(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.RUNNING, 0, started_at=START))


def unreachable_node(number: int) -> NodeFacts:
    """Return a node on a lost machine, whose pod can't be deleted."""
    return node(number, process=ProcessFacts(ProcessState.MISSING, 0, unreachable_since=START, lost_at=START + 60))


def terminating_node(number: int) -> NodeFacts:
    entry = ready_node(number)
    return replace(entry, process=replace(entry.process, is_terminating=True))


def node_with_problem(number: int) -> NodeFacts:
    entry = ready_node(number)
    assert entry.agent is not None
    report = replace(entry.agent.report, problem=AgentProblem("NoInterface", "no network"))
    return replace(entry, agent=replace(entry.agent, report=report))


def exited_node(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.EXITED, 0, ended_at=START))


REPLACE_UNUSABLE_MEMBERS_ROWS: list[tuple[Status, tuple[NodeFacts, ...], tuple[int, ...]]] = [
    # At the first start all pods are equal, and the first nodes are the members.
    (FIRST, (ready_node(0), ready_node(1), ready_node(2)), (0, 1)),
    (FIRST, (ready_node(0), scheduled_node(1), ready_node(2)), (0, 1)),
    (FIRST, (ready_node(0), scheduled_node(1, FETCHING_FILES), ready_node(2)), (0, 1)),
    (FIRST, (ready_node(0), silent_node(1), ready_node(2)), (0, 1)),
    # A spare replaces a node that will not be ready soon.
    (FIRST, (ready_node(0), pending_node(1), ready_node(2)), (0, 2)),
    (FIRST, (ready_node(0), pending_node(1), scheduled_node(2)), (0, 2)),
    (FIRST, (ready_node(0), scheduled_node(1, "ImagePullBackOff"), ready_node(2)), (0, 2)),
    (FIRST, (ready_node(0), missing_node(1), ready_node(2)), (0, 2)),
    (FIRST, (ready_node(0), node_with_problem(1), ready_node(2)), (0, 2)),
    (FIRST, (ready_node(0), exited_node(1), ready_node(2)), (0, 2)),
    (FIRST, (pending_node(0), pending_node(1), ready_node(2)), (2, 1)),
    (FIRST, (pending_node(0), ready_node(1), pending_node(2)), (0, 1)),
    (FIRST, (missing_node(0), missing_node(1), missing_node(2)), (0, 1)),
    # After a failure a spare is faster than a new pod.
    (RESTARTING, (ready_node(0), missing_node(1), ready_node(2)), (0, 2)),
    (RESTARTING, (ready_node(0), scheduled_node(1), ready_node(2)), (0, 2)),
    (RESTARTING, (ready_node(0), scheduled_node(1), scheduled_node(2)), (0, 1)),
    (RESTARTING, (ready_node(0), missing_node(1), scheduled_node(2)), (0, 2)),
    (RESTARTING, (ready_node(0), terminating_node(1), ready_node(2)), (0, 2)),
    (RESTARTING, (ready_node(0), ready_node(1), ready_node(2)), (0, 1)),
    (RESTARTING, (missing_node(0), ready_node(1), ready_node(2)), (2, 1)),
    (RESTARTING, (scheduled_node(0), missing_node(1), ready_node(2)), (0, 2)),
    (RESTARTING, (scheduled_node(0), missing_node(1), ready_node(2), ready_node(3)), (3, 2)),
    (RESTARTING, (ready_node(0), missing_node(1), node_with_problem(2), scheduled_node(3)), (0, 3)),
    # Ranks of the last attempt may still run.
    (RESTARTING, (unreachable_node(0), unreachable_node(1), ready_node(2), ready_node(3)), (0, 1)),
    (RESTARTING, (unreachable_node(0), ready_node(1), ready_node(2)), (2, 1)),
    (RESTARTING, (unreachable_node(0), missing_node(1), ready_node(2), ready_node(3)), (2, 3)),
    (RESTARTING, (silent_node(0), missing_node(1), ready_node(2)), (0, 1)),
    (RESTARTING, (node(0, agent(0, AgentPhase.STOPPING)), missing_node(1), ready_node(2)), (0, 1)),
    (RESUMED, (silent_node(0), pending_node(1), ready_node(2)), (0, 1)),
    (RESUMED, (ready_node(0), pending_node(1), ready_node(2)), (0, 2)),
]


def test_replace_unusable_members() -> None:
    def check(previous: Status, nodes: tuple[NodeFacts, ...], expected: tuple[int, ...]) -> None:
        assert replace_unusable_members(previous, (0, 1), nodes) == expected

    check_rows(REPLACE_UNUSABLE_MEMBERS_ROWS, lambda row: check(*row))


def test_other_members_keep_their_node_ranks() -> None:
    nodes = (ready_node(0), missing_node(1), ready_node(2), ready_node(3), ready_node(4))
    assert replace_unusable_members(RESTARTING, (2, 1, 4), nodes) == (2, 0, 4)


@pytest.mark.parametrize(
    ("spare", "expected"),
    [(ready_node(2), True), (scheduled_node(2), False), (node_with_problem(2), False), (terminating_node(2), False)],
)
def test_is_spare_ready(spare: NodeFacts, *, expected: bool) -> None:
    assert is_spare_ready(spare) is expected


NODE_BUILDERS = (
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
    builders=st.lists(st.sampled_from(NODE_BUILDERS), min_size=3, max_size=6),
    data=st.data(),
)
@settings(max_examples=choose_example_count(600, share=12))
def test_the_choice_is_stable_and_only_replaces_nodes_that_cannot_run(
    previous: Status, builders: list[Callable[[int], NodeFacts]], data: st.DataObject
) -> None:
    nodes = tuple(build(number) for number, build in enumerate(builders))
    count = data.draw(st.integers(1, len(nodes)))
    members = tuple(data.draw(st.permutations(range(len(nodes)))))[:count]
    chosen = replace_unusable_members(previous, members, nodes)
    assert len(set(chosen)) == len(chosen) == count
    assert replace_unusable_members(previous, chosen, nodes) == chosen
    for before, after in zip(members, chosen, strict=True):
        assert before == after or not is_spare_ready(nodes[before])
    if previous.attempt > 0 and any(builders[member] is silent_node for member in members):
        assert chosen == members


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("0-1", "0,2", "node 2 for node 1"),
        ("0-5", "6-9,4-5", "node 6 for node 0, node 7 for node 1, node 8 for node 2 and 1 more"),
        ("0-1", "0-1", ""),
        ("0-2", "0,2", ""),
        (None, "0-1", ""),
        ("0-1", "0-99999999", ""),
    ],
)
def test_describe_replaced_members(before: str | None, after: str, expected: str) -> None:
    assert describe_replaced_members(find_replaced_members(before, after)) == expected


def new_world_with_spares(policy: FailurePolicy = POLICY, nodes: int = 2, spares: int = 1) -> World:
    world = new_world_with_policy(policy, nodes)
    slots = [SimulatedNode(number, 2) for number in range(nodes + spares)]
    return World(with_spec(world.job, spares=spares), slots)


def start_world(nodes: int = 2, spares: int = 1) -> World:
    world = new_world_with_spares(nodes=nodes, spares=spares)
    run_rounds(world, 5)
    assert world.status.phase == "Running"
    return world


def count_ready_spares(world: World) -> tuple[int, int]:
    assert world.status.spares is not None
    return (world.status.spares.ready, world.status.spares.desired)


def test_a_spare_is_ready_while_the_ranks_run() -> None:
    world = start_world()
    assert [entry.started_attempts for entry in world.nodes] == [[1], [1], []]
    assert world.status.members == "0-1"
    assert count_ready_spares(world) == (1, 1)
    assert world.status.ranks is not None
    assert world.status.ranks.world == 4


def test_a_job_does_not_wait_for_its_spare() -> None:
    world = new_world_with_spares()
    world.nodes[2].rounds_until_start = 1000
    run_rounds(world, 5)
    assert world.status.phase == "Running"
    assert count_ready_spares(world) == (0, 1)
    assert world.status.spares is not None
    assert world.status.spares.message == "digits-2 is starting"


def test_the_ranks_of_a_lost_node_start_on_the_spare() -> None:
    world = start_world()
    lose_machines(world, 1)
    world.nodes[1].rounds_until_start = 1000
    run_rounds(world, EVENT_ROUNDS)
    assert [entry.started_attempts for entry in world.nodes] == [[1, 2], [1], [2]]
    assert [entry.number for entry in world.nodes[2].ranks] == [2, 3]
    assert world.status.members == "0,2"
    assert restart_records(world.status) == [(1, "NodeLost", "Disruption")]
    assert world.status.restarts is not None
    (record,) = world.status.restarts.history
    assert find_replaced_members(record.members, world.status.members) == ((2, 1),)


def test_the_new_pod_of_a_lost_node_is_the_next_spare() -> None:
    world = start_world()
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Running"
    assert [entry.process.replacement for entry in world.nodes] == [0, 1, 0]
    assert count_ready_spares(world) == (1, 1)
    lose_machines(world, 2)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.members, world.status.attempt) == ("Running", "0-1", 3)
    assert [entry.number for entry in world.nodes[1].ranks] == [2, 3]


def test_a_spare_replaces_a_slow_node() -> None:
    world = new_world_with_spares(REPLACE_POLICY)
    run_rounds(world, 5)
    train_for(world, 5)
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS + 10)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, world.status.members) == ("Running", 2, "0,2")
    assert [entry.process.replacement for entry in world.nodes] == [0, 1, 0]
    assert count_ready_spares(world) == (1, 1)


@pytest.mark.parametrize("edited_members", [None, "0-1", "0", "0-2", "0-999999", "x", "cleared"])
def test_no_two_nodes_run_the_same_ranks_after_an_edit_of_the_status(edited_members: str | None) -> None:
    world = start_world()
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.members == "0,2"
    world.status = (
        Status() if edited_members == "cleared" else world.status.model_copy(update={"members": edited_members})
    )
    for _ in range(EVENT_ROUNDS):
        run_rounds(world)
        running = [rank.number for entry in world.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running))
    assert world.status.members == "0-1"
    assert [entry.number for entry in world.nodes[1].ranks] == [2, 3]


@pytest.mark.parametrize("is_new_leader", [False, True])
def test_the_ranks_start_again_after_an_edit_of_the_members_order(*, is_new_leader: bool) -> None:
    world = start_world()
    world.status = world.status.model_copy(update={"members": "1,0"})
    if is_new_leader:
        world.restart_operator()
    for _ in range(EVENT_ROUNDS):
        world.now += 1
        run_rounds(world)
        running = [rank.number for entry in world.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running))
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert sorted(running) == [0, 1, 2, 3]


def test_a_failed_rank_uses_no_spare() -> None:
    world = start_world()
    world.nodes[1].ranks[0].end(world.now, 7, None, "ValueError: bad label")
    run_rounds(world, EVENT_ROUNDS)
    assert [entry.started_attempts for entry in world.nodes] == [[1, 2], [1, 2], []]
    assert (world.status.phase, world.status.members) == ("Running", "0-1")


def test_a_failed_spare_is_replaced_without_a_restart() -> None:
    world = start_world()
    world.kill_container(2)
    run_rounds(world, 3)
    assert (world.status.phase, count_ready_spares(world)) == ("Running", (0, 1))
    assert world.nodes[2].process.replacement == 0
    world.now += BACKOFF_SECONDS
    run_rounds(world, 3)
    assert world.nodes[2].process.replacement == 1
    assert (world.status.phase, world.status.attempt, count_ready_spares(world)) == ("Running", 1, (1, 1))


def test_a_spare_whose_agent_can_t_work_is_replaced() -> None:
    world = start_world()
    spare = world.nodes[2]
    spare.problem = AgentProblem("NoPort", "all ports are in use")
    run_rounds(world, 3)
    assert count_ready_spares(world) == (0, 1)
    assert world.status.spares is not None
    assert world.status.spares.message == "digits-2: all ports are in use"
    states = [(spare.process.replacement, spare.process.state)]
    world.now += BACKOFF_SECONDS
    run_rounds(world, 2)
    states.append((spare.process.replacement, spare.process.state))
    assert states == [(0, ProcessState.RUNNING), (0, ProcessState.EXITED)]
    world.now += BACKOFF_SECONDS
    run_rounds(world, 3)
    assert (spare.process.replacement, count_ready_spares(world)) == (1, (1, 1))
    assert (world.status.phase, world.status.attempt) == ("Running", 1)


def test_a_lost_spare_is_replaced() -> None:
    world = start_world()
    lose_machines(world, 2)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)
    assert (world.nodes[2].process.replacement, count_ready_spares(world)) == (1, (1, 1))


def test_the_event_and_the_board_name_the_spare() -> None:
    world = start_world()
    before = world.status
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    texts = [event.message for event in list_past_events(world.status) if event.reason == SPARE_USED]
    assert texts == ["A spare takes the place of a node in attempt 2: node 2 for node 1"]
    assert not any(event.reason == SPARE_USED for event in list_past_events(before))
    (line,) = format_restarts(world.status)
    assert " · node 2 for node 1 · " in line
    assert format_spares(world.status) == ("the spare is ready",)


def test_the_board_compares_the_members_of_successive_attempts_only() -> None:
    world = start_world()
    lose_machines(world, 1)
    run_rounds(world, EVENT_ROUNDS)
    restarts = world.status.restarts
    assert restarts is not None
    # The history has dropped the records of the attempts between these two.
    later_record = restarts.history[0].model_copy(update={"attempt": 9, "members": "0,2"})
    history = restarts.model_copy(update={"history": (*restarts.history, later_record)})
    first, last = format_restarts(world.status.model_copy(update={"restarts": history, "attempt": 10}))[-2:]
    assert " · node " not in first
    assert " · node " not in last


def test_a_released_gang_also_deletes_its_spare() -> None:
    a_job = new_world_with_spares(nodes=3).job
    nodes = (scheduled_node(0), pending_node(1), pending_node(2), scheduled_node(3))
    at = START + a_job.spec.startup_timeout_seconds + 60
    job_facts = complete_facts(a_job, FIRST, facts(*nodes), at)
    assert [entry.node for entry in job_facts.nodes] == [0, 3, 2]
    actions = decide(a_job, job_facts, judge(a_job, FIRST, job_facts, at), at, 1)
    assert [action.node for action in actions if isinstance(action, RemoveNode)] == [0, 3, 2, 1]


def test_members_are_created_before_spares() -> None:
    world = new_world_with_spares()
    job_facts = complete_facts(world.job, FIRST, world.facts(), START)
    actions = decide(world.job, job_facts, judge(world.job, FIRST, job_facts, START), START, 1)
    assert [action.node for action in actions if isinstance(action, CreateNode)] == [0, 1, 2]


def test_one_spare_replaces_one_of_two_lost_nodes() -> None:
    world = start_world(nodes=3)
    lose_machines(world, 1, 2)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Running"
    members = parse_members(world.status.members or "", 4)
    assert members is not None
    assert members[0] == 0
    assert 3 in members


def test_spares_do_not_replace_nodes_if_all_of_them_may_still_run() -> None:
    world = start_world(spares=2)
    lose_machines(world, 0, 1)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Restarting"
    assert [entry.started_attempts for entry in world.nodes] == [[1], [1], [], []]
    (stalled,) = [entry for entry in world.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)
    world.restart_operator()
    run_rounds(world, EVENT_ROUNDS)
    world.now += 2 * LOST_SECONDS
    run_rounds(world, EVENT_ROUNDS)
    assert [entry.started_attempts for entry in world.nodes] == [[1], [1], [], []]
    world.nodes[0].reconnect(world.now)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_the_spares_end_with_the_job() -> None:
    world = start_world()
    for entry in world.nodes[:2]:
        for rank in entry.ranks:
            rank.end(world.now, 0, None)
    run_rounds(world, 5)
    assert world.status.phase == "Succeeded"
    assert not any(entry.is_alive for entry in world.nodes)
    assert count_ready_spares(world) == (0, 1)


def test_a_suspension_deletes_the_spares() -> None:
    world = start_world()
    apply_event(world, "suspend", 0)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Suspended"
    assert [entry.process.state for entry in world.nodes] == [ProcessState.MISSING] * 3
    apply_event(world, "resume", 0)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt, count_ready_spares(world)) == ("Running", 2, (1, 1))


@given(events=EVENT_LISTS, spares=st.integers(1, 2))
@settings(max_examples=choose_example_count(150, share=10), deadline=None)
def test_with_any_events_a_job_with_spares_runs_each_rank_once_and_ends(
    events: list[tuple[tuple[str, int], int]], spares: int
) -> None:
    world = new_world_with_spares(nodes=2, spares=spares)
    for (kind, value), rounds in events:
        apply_event(world, kind, value)
        run_rounds(world, rounds)
        assert sum(len(entry.ranks) for entry in world.nodes if entry.has_running_ranks) <= 4
    for _ in range(6):
        run_to_the_end(world)
        world.now += 30
        if world.status.final_condition is not None:
            break
    assert world.status.final_condition is not None, (world.status.phase, world.status.message)

"""Which spare takes the place of which node, and when none may."""

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
from muster.core.facts import NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.failure.problems import FETCHING_FILES, LOST_SECONDS, UNSCHEDULABLE
from muster.core.fence import OLD_POD_MAY_RUN
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.members import describe_replaced_members, find_replaced_members, parse_members
from muster.core.non_members import BACKOFF_SECONDS
from muster.core.spares import is_spare_ready, replace_unusable_members
from muster.core.status.events import SPARE_USED, list_past_events
from muster.core.stragglers import REPLACE_SECONDS
from muster_worker.contract.schema import AgentPhase, AgentProblem
from support.searches import examples
from unit.core.builders import START, agent, facts, missing_node, node, ready_node
from unit.core.simulated import SimulatedNode, World
from unit.core.test_any_operator import EVENTS, finish, happen, live, lose_machines
from unit.core.test_hangs import train
from unit.core.test_restarts import EVENT_TURNS, records
from unit.core.test_restarts import world as world_without_spares
from unit.core.test_stragglers import REPLACING, run_with

POLICY = FailurePolicy(max_restarts=20, max_disruptions=20)
AT = "2025-11-21T04:05:05Z"
FIRST = Status()
LOST = RestartRecord(attempt=1, reason="NodeLost", message="lost", counts_as="Disruption", at=AT)
RESTARTING = Status(
    attempt=2,
    phase="Restarting",
    start_time=AT,
    restarts=Restarts(total=1, failures=0, disruptions=1, replacement=1, is_pending=True, history=(LOST,)),
)
RESUMED = Status(attempt=1)


def scheduled(number: int, problem: str = "") -> NodeFacts:
    """A pod that is placed, and whose containers have not started."""
    found = Problem(problem, "a sentence") if problem else None
    return node(number, process=ProcessFacts(ProcessState.WAITING, 1, scheduled_at=START, problem=found))


def pending(number: int) -> NodeFacts:
    problem = Problem(UNSCHEDULABLE, "no room")
    return node(number, process=ProcessFacts(ProcessState.WAITING, 1, problem=problem))


def unheard(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.RUNNING, 0, started_at=START))


def cut_off(number: int) -> NodeFacts:
    """A lost machine, whose pod can't be deleted."""
    return node(number, process=ProcessFacts(ProcessState.MISSING, 0, unreachable_since=START, lost_at=START + 60))


def terminating(number: int) -> NodeFacts:
    entry = ready_node(number)
    return replace(entry, process=replace(entry.process, is_terminating=True))


def broken(number: int) -> NodeFacts:
    entry = ready_node(number)
    assert entry.agent is not None
    report = replace(entry.agent.report, problem=AgentProblem("NoInterface", "no network"))
    return replace(entry, agent=replace(entry.agent, report=report))


def exited(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.EXITED, 0, ended_at=START))


@pytest.mark.parametrize(
    ("previous", "nodes", "expected"),
    [
        # All pods are alike at the first start, and the first nodes are its members.
        (FIRST, (ready_node(0), ready_node(1), ready_node(2)), (0, 1)),
        (FIRST, (ready_node(0), scheduled(1), ready_node(2)), (0, 1)),
        (FIRST, (ready_node(0), scheduled(1, FETCHING_FILES), ready_node(2)), (0, 1)),
        (FIRST, (ready_node(0), unheard(1), ready_node(2)), (0, 1)),
        # A node that will not be ready soon is replaced.
        (FIRST, (ready_node(0), pending(1), ready_node(2)), (0, 2)),
        (FIRST, (ready_node(0), pending(1), scheduled(2)), (0, 2)),
        (FIRST, (ready_node(0), scheduled(1, "ImagePullBackOff"), ready_node(2)), (0, 2)),
        (FIRST, (ready_node(0), missing_node(1), ready_node(2)), (0, 2)),
        (FIRST, (ready_node(0), broken(1), ready_node(2)), (0, 2)),
        (FIRST, (ready_node(0), exited(1), ready_node(2)), (0, 2)),
        (FIRST, (pending(0), pending(1), ready_node(2)), (2, 1)),
        (FIRST, (pending(0), ready_node(1), pending(2)), (0, 1)),
        (FIRST, (missing_node(0), missing_node(1), missing_node(2)), (0, 1)),
        # After a failure a spare is faster than a new pod.
        (RESTARTING, (ready_node(0), missing_node(1), ready_node(2)), (0, 2)),
        (RESTARTING, (ready_node(0), scheduled(1), ready_node(2)), (0, 2)),
        (RESTARTING, (ready_node(0), scheduled(1), scheduled(2)), (0, 1)),
        (RESTARTING, (ready_node(0), missing_node(1), scheduled(2)), (0, 2)),
        (RESTARTING, (ready_node(0), terminating(1), ready_node(2)), (0, 2)),
        (RESTARTING, (ready_node(0), ready_node(1), ready_node(2)), (0, 1)),
        (RESTARTING, (missing_node(0), ready_node(1), ready_node(2)), (2, 1)),
        (RESTARTING, (scheduled(0), missing_node(1), ready_node(2)), (0, 2)),
        (RESTARTING, (scheduled(0), missing_node(1), ready_node(2), ready_node(3)), (3, 2)),
        (RESTARTING, (ready_node(0), missing_node(1), broken(2), scheduled(3)), (0, 3)),
        # Ranks of the last attempt may run.
        (RESTARTING, (cut_off(0), cut_off(1), ready_node(2), ready_node(3)), (0, 1)),
        (RESTARTING, (cut_off(0), ready_node(1), ready_node(2)), (2, 1)),
        (RESTARTING, (cut_off(0), missing_node(1), ready_node(2), ready_node(3)), (2, 3)),
        (RESTARTING, (unheard(0), missing_node(1), ready_node(2)), (0, 1)),
        (RESTARTING, (node(0, agent(0, AgentPhase.STOPPING)), missing_node(1), ready_node(2)), (0, 1)),
        (RESUMED, (unheard(0), pending(1), ready_node(2)), (0, 1)),
        (RESUMED, (ready_node(0), pending(1), ready_node(2)), (0, 2)),
    ],
)
def test_a_spare_takes_the_place_of_a_node(
    previous: Status, nodes: tuple[NodeFacts, ...], expected: tuple[int, ...]
) -> None:
    assert replace_unusable_members(previous, (0, 1), nodes) == expected


def test_the_others_keep_their_node_ranks() -> None:
    nodes = (ready_node(0), missing_node(1), ready_node(2), ready_node(3), ready_node(4))
    assert replace_unusable_members(RESTARTING, (2, 1, 4), nodes) == (2, 0, 4)


@pytest.mark.parametrize(
    ("spare", "expected"), [(ready_node(2), True), (scheduled(2), False), (broken(2), False), (terminating(2), False)]
)
def test_a_ready_spare(spare: NodeFacts, *, expected: bool) -> None:
    assert is_spare_ready(spare) is expected


_KINDS = (ready_node, scheduled, pending, missing_node, unheard, cut_off, terminating, broken, exited)


@given(
    previous=st.sampled_from((FIRST, RESTARTING, RESUMED)),
    kinds=st.lists(st.sampled_from(_KINDS), min_size=3, max_size=6),
    data=st.data(),
)
@settings(max_examples=examples(600))
def test_the_choice_is_stable_and_only_replaces_nodes_that_cannot_run(
    previous: Status, kinds: list[Callable[[int], NodeFacts]], data: st.DataObject
) -> None:
    nodes = tuple(kind(number) for number, kind in enumerate(kinds))
    count = data.draw(st.integers(1, len(nodes)))
    members = tuple(data.draw(st.permutations(range(len(nodes)))))[:count]
    chosen = replace_unusable_members(previous, members, nodes)
    assert len(set(chosen)) == len(chosen) == count
    assert replace_unusable_members(previous, chosen, nodes) == chosen
    for before, after in zip(members, chosen, strict=True):
        assert before == after or not is_spare_ready(nodes[before])
    if previous.attempt > 0 and any(kinds[member] is unheard for member in members):
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
def test_which_node_has_the_place_of_which(before: str | None, after: str, expected: str) -> None:
    assert describe_replaced_members(find_replaced_members(before, after)) == expected


def world(policy: FailurePolicy = POLICY, nodes: int = 2, spares: int = 1) -> World:
    plain = world_without_spares(policy, nodes)
    spec = plain.job.spec.model_copy(update={"spares": spares})
    slots = [SimulatedNode(number, 2) for number in range(nodes + spares)]
    return World(plain.job.model_copy(update={"spec": spec}), slots)


def started(nodes: int = 2, spares: int = 1) -> World:
    result = world(nodes=nodes, spares=spares)
    live(result, 5)
    assert result.status.phase == "Running"
    return result


def readiness(current: World) -> tuple[int, int]:
    assert current.status.spares is not None
    return (current.status.spares.ready, current.status.spares.desired)


def test_a_spare_waits_beside_the_running_ranks() -> None:
    current = started()
    assert [entry.begun for entry in current.nodes] == [[1], [1], []]
    assert current.status.members == "0-1"
    assert readiness(current) == (1, 1)
    assert current.status.ranks is not None
    assert current.status.ranks.world == 4


def test_a_job_starts_without_a_spare() -> None:
    current = world()
    current.nodes[2].waits = 1000
    live(current, 5)
    assert current.status.phase == "Running"
    assert readiness(current) == (0, 1)
    assert current.status.spares is not None
    assert current.status.spares.message == "digits-2 is starting"


def test_a_lost_node_s_ranks_start_on_the_spare_with_the_others() -> None:
    current = started()
    lose_machines(current, 1)
    current.nodes[1].waits = 1000
    live(current, EVENT_TURNS)
    assert [entry.begun for entry in current.nodes] == [[1, 2], [1], [2]]
    assert [entry.number for entry in current.nodes[2].ranks] == [2, 3]
    assert current.status.members == "0,2"
    assert records(current.status) == [(1, "NodeLost", "Disruption")]
    assert current.status.restarts is not None
    (record,) = current.status.restarts.history
    assert find_replaced_members(record.members, current.status.members) == ((2, 1),)


def test_the_lost_node_s_new_pod_is_the_next_spare() -> None:
    current = started()
    lose_machines(current, 1)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Running"
    assert [entry.process.replacement for entry in current.nodes] == [0, 1, 0]
    assert readiness(current) == (1, 1)
    lose_machines(current, 2)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.members, current.status.attempt) == ("Running", "0-1", 3)
    assert [entry.number for entry in current.nodes[1].ranks] == [2, 3]


def test_a_spare_takes_the_place_of_a_slow_node() -> None:
    current = world(REPLACING)
    live(current, 5)
    train(current, 5)
    run_with(current, {3: 1.0}, REPLACE_SECONDS + 10)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, current.status.members) == ("Running", 2, "0,2")
    assert [entry.process.replacement for entry in current.nodes] == [0, 1, 0]
    assert readiness(current) == (1, 1)


@pytest.mark.parametrize("forged", [None, "0-1", "0", "0-2", "0-999999", "x", "cleared"])
def test_no_two_nodes_run_the_same_ranks_if_someone_edits_the_status(forged: str | None) -> None:
    current = started()
    lose_machines(current, 1)
    live(current, EVENT_TURNS)
    assert current.status.members == "0,2"
    current.status = Status() if forged == "cleared" else current.status.model_copy(update={"members": forged})
    for _ in range(EVENT_TURNS):
        live(current)
        running = [rank.number for entry in current.nodes for rank in entry.ranks if rank.ended_at is None]
        assert len(running) == len(set(running))
    assert current.status.members == "0-1"
    assert [entry.number for entry in current.nodes[1].ranks] == [2, 3]


def test_a_failed_rank_uses_no_spare() -> None:
    current = started()
    current.nodes[1].ranks[0].end(current.now, 7, None, "ValueError: bad label")
    live(current, EVENT_TURNS)
    assert [entry.begun for entry in current.nodes] == [[1, 2], [1, 2], []]
    assert (current.status.phase, current.status.members) == ("Running", "0-1")


def test_a_spare_that_fails_is_replaced_and_fails_nothing() -> None:
    current = started()
    current.lose(2)
    live(current, 3)
    assert (current.status.phase, readiness(current)) == ("Running", (0, 1))
    assert current.nodes[2].process.replacement == 0
    current.now += BACKOFF_SECONDS
    live(current, 3)
    assert current.nodes[2].process.replacement == 1
    assert (current.status.phase, current.status.attempt, readiness(current)) == ("Running", 1, (1, 1))


def test_a_spare_whose_agent_can_t_work_is_replaced() -> None:
    current = started()
    spare = current.nodes[2]
    spare.problem = AgentProblem("NoPort", "all ports are in use")
    live(current, 3)
    assert readiness(current) == (0, 1)
    assert current.status.spares is not None
    assert current.status.spares.message == "digits-2: all ports are in use"
    states = [(spare.process.replacement, spare.process.state)]
    current.now += BACKOFF_SECONDS
    live(current, 2)
    states.append((spare.process.replacement, spare.process.state))
    assert states == [(0, ProcessState.RUNNING), (0, ProcessState.EXITED)]
    current.now += BACKOFF_SECONDS
    live(current, 3)
    assert (spare.process.replacement, readiness(current)) == (1, (1, 1))
    assert (current.status.phase, current.status.attempt) == ("Running", 1)


def test_a_lost_spare_is_replaced() -> None:
    current = started()
    lose_machines(current, 2)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 1)
    assert (current.nodes[2].process.replacement, readiness(current)) == (1, (1, 1))


def test_the_event_and_the_board_name_the_spare() -> None:
    current = started()
    before = current.status
    lose_machines(current, 1)
    live(current, EVENT_TURNS)
    texts = [event.message for event in list_past_events(current.status) if event.reason == SPARE_USED]
    assert texts == ["A spare takes the place of a node in attempt 2: node 2 for node 1"]
    assert not any(event.reason == SPARE_USED for event in list_past_events(before))
    (line,) = format_restarts(current.status)
    assert " · node 2 for node 1 · " in line
    assert format_spares(current.status) == ("the spare is ready",)


def test_the_board_compares_the_members_of_successive_attempts_only() -> None:
    current = started()
    lose_machines(current, 1)
    live(current, EVENT_TURNS)
    restarts = current.status.restarts
    assert restarts is not None
    # The records of the attempts between them were dropped.
    later = restarts.history[0].model_copy(update={"attempt": 9, "members": "0,2"})
    history = restarts.model_copy(update={"history": (*restarts.history, later)})
    first, last = format_restarts(current.status.model_copy(update={"restarts": history, "attempt": 10}))[-2:]
    assert " · node " not in first
    assert " · node " not in last


def test_a_gang_that_is_released_keeps_no_spare() -> None:
    asked = world(nodes=3).job
    nodes = (scheduled(0), pending(1), pending(2), scheduled(3))
    at = START + asked.spec.startup_timeout_seconds + 60
    known = infer(asked, FIRST, facts(*nodes), at)
    assert [entry.node for entry in known.nodes] == [0, 3, 2]
    actions = decide(asked, known, judge(asked, FIRST, known, at), at, 1)
    assert [action.node for action in actions if isinstance(action, RemoveNode)] == [0, 3, 2, 1]


def test_members_are_created_before_spares() -> None:
    current = world()
    facts_before = infer(current.job, FIRST, current.facts(), START)
    actions = decide(current.job, facts_before, judge(current.job, FIRST, facts_before, START), START, 1)
    assert [action.node for action in actions if isinstance(action, CreateNode)] == [0, 1, 2]


def test_two_lost_nodes_with_one_spare() -> None:
    current = started(nodes=3)
    lose_machines(current, 1, 2)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Running"
    members = parse_members(current.status.members or "", 4)
    assert members is not None
    assert members[0] == 0
    assert 3 in members


def test_spares_do_not_replace_nodes_that_may_all_run() -> None:
    current = started(spares=2)
    lose_machines(current, 0, 1)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Restarting"
    assert [entry.begun for entry in current.nodes] == [[1], [1], [], []]
    (stalled,) = [entry for entry in current.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)
    current.restart_operator()
    live(current, EVENT_TURNS)
    current.now += 2 * LOST_SECONDS
    live(current, EVENT_TURNS)
    assert [entry.begun for entry in current.nodes] == [[1], [1], [], []]
    current.nodes[0].heal(current.now)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_the_spares_end_with_the_job() -> None:
    current = started()
    for entry in current.nodes[:2]:
        for rank in entry.ranks:
            rank.end(current.now, 0, None)
    live(current, 5)
    assert current.status.phase == "Succeeded"
    assert not any(entry.is_alive for entry in current.nodes)
    assert readiness(current) == (0, 1)


def test_the_spares_are_deleted_with_a_suspension() -> None:
    current = started()
    happen(current, "suspend", 0)
    live(current, EVENT_TURNS)
    assert current.status.phase == "Suspended"
    assert [entry.process.state for entry in current.nodes] == [ProcessState.MISSING] * 3
    happen(current, "resume", 0)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt, readiness(current)) == ("Running", 2, (1, 1))


@given(events=EVENTS, spares=st.integers(1, 2))
@settings(max_examples=examples(150), deadline=None)
def test_with_any_events_a_job_with_spares_runs_once_for_each_start_and_ends(
    events: list[tuple[tuple[str, int], int]], spares: int
) -> None:
    current = world(nodes=2, spares=spares)
    for (kind, value), turns in events:
        happen(current, kind, value)
        live(current, turns)
        assert sum(len(entry.ranks) for entry in current.nodes if entry.lives) <= 4
    for _ in range(6):
        finish(current)
        current.now += 30
        if current.status.final_condition is not None:
            break
    assert current.status.final_condition is not None, (current.status.phase, current.status.message)

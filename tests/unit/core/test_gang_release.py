"""A partly scheduled gang deletes its pods. So if two gangs have half of the machines each, one of them can run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.job import Job
from muster.api.spec.queue import Queue
from muster.api.status.status import Placement, Status
from muster.api.timestamps import format_timestamp
from muster.core.actions import Action, CreateNode, RemoveNode
from muster.core.clean_up import REMOVE_GRACE_SECONDS
from muster.core.decide import decide, find_requeue_time
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.gang_release import FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, compute_release_backoff
from muster.core.judge import judge
from muster.core.problem import Problem
from muster.core.status.events import list_new_events
from support.searches import choose_example_count
from unit.core.builders import T0, UID, compute_status, facts, job, missing_node, node, ready_node, with_spec
from unit.core.simulated import SimulatedNode, World

STARTUP = 60
NO_ROOM = Problem("Unschedulable", "none of 2 nodes has room: 2 lack nvidia.com/gpu", "insufficient nvidia.com/gpu")
QUOTA = Problem("QuotaExceeded", "quota team is exceeded", "quota team has no room for pods")
GATED = Problem("SchedulingGated", "the pod has a scheduling gate")
RELEASE_REASON = "not all pods of its gang could be scheduled"


def scheduled_node(number: int, at: float = 0.0, replacement: int = 0, *, is_terminating: bool = False) -> NodeFacts:
    """Return a node whose pod was scheduled `at` seconds after the job's creation, and is starting."""
    process = ProcessFacts(ProcessState.WAITING, replacement, scheduled_at=T0 + at, is_terminating=is_terminating)
    return node(number, process=process)


def unscheduled_node(number: int, problem: Problem | None = NO_ROOM, replacement: int = 0) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.WAITING, replacement, problem=problem))


def node_over_quota(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.MISSING, -1, problem=QUOTA))


def small_job(nodes: int = 2) -> Job:
    return job(nodes, startup=STARTUP)


def decide_actions(a_job: Job, current: JobFacts, at: float, previous: Status | None = None) -> tuple[Action, ...]:
    now, status = T0 + at, previous or Status()
    return decide(a_job, current, judge(a_job, status, current, now), now, 1)


def status_after(current: JobFacts, at: float, previous: Status | None = None) -> Status:
    return compute_status(small_job(len(current.nodes)), previous or Status(), current, T0 + at)


def remove_actions(*nodes: int) -> tuple[Action, ...]:
    return tuple(RemoveNode(number, REMOVE_GRACE_SECONDS, RELEASE_REASON) for number in nodes)


@pytest.mark.parametrize(
    ("nodes", "at", "actions"),
    [
        ((scheduled_node(0), unscheduled_node(1)), STARTUP - 1, ()),
        ((scheduled_node(0), unscheduled_node(1)), STARTUP, remove_actions(0, 1)),
        ((scheduled_node(0, 30), scheduled_node(1, 5), unscheduled_node(2)), STARTUP + 4, ()),
        ((scheduled_node(0, 30), scheduled_node(1, 5), unscheduled_node(2)), STARTUP + 5, remove_actions(0, 1, 2)),
        ((ready_node(0), scheduled_node(1), unscheduled_node(2)), STARTUP, remove_actions(0, 1, 2)),
        # No node is scheduled, or another job can't release what the nodes lack.
        ((unscheduled_node(0), unscheduled_node(1)), STARTUP, ()),
        ((scheduled_node(0), unscheduled_node(1, None)), STARTUP, ()),
        ((scheduled_node(0), unscheduled_node(1, GATED)), STARTUP, ()),
        # The only scheduled pod is already being deleted.
        ((scheduled_node(0, is_terminating=True), unscheduled_node(1)), STARTUP, ()),
        ((scheduled_node(0), node_over_quota(1)), STARTUP, remove_actions(0)),
    ],
)
def test_a_partly_scheduled_gang_is_released_after_the_startup_timeout(
    nodes: tuple[NodeFacts, ...], at: float, actions: tuple[Action, ...]
) -> None:
    result = decide_actions(small_job(len(nodes)), facts(*nodes), at)
    assert tuple(action for action in result if not isinstance(action, CreateNode)) == actions


def test_a_gang_of_a_queue_is_not_released() -> None:
    queued = with_spec(small_job(), queue=Queue(volcano="a"))
    assert decide_actions(queued, facts(scheduled_node(0), unscheduled_node(1)), STARTUP) == ()


def test_the_job_is_requeued_for_the_release() -> None:
    a_job, current = small_job(), facts(scheduled_node(0, 7), unscheduled_node(1))
    assert find_requeue_time(a_job, current, judge(a_job, Status(), current, T0 + 8), T0 + 8) == T0 + 7 + STARTUP


def status_after_release(releases: int = 1, replacement: int = 1, at: float = 0.0) -> Status:
    return Status(
        placement=Placement(releases=releases, replacement=replacement, released_at=format_timestamp(T0 + at))
    )


BACKOFF = compute_release_backoff(UID, 1)


@pytest.mark.parametrize(
    ("nodes", "at", "actions"),
    [
        ((missing_node(0), missing_node(1)), BACKOFF - 1, ()),
        ((missing_node(0), missing_node(1)), BACKOFF, (CreateNode(0, 1), CreateNode(1, 1))),
        # The next leader deletes the remaining pods before it creates others.
        ((scheduled_node(0), unscheduled_node(1)), 1, remove_actions(0, 1)),
        ((scheduled_node(0, is_terminating=True), missing_node(1)), BACKOFF + 1, ()),
        ((scheduled_node(0), missing_node(1)), BACKOFF + 1, remove_actions(0)),
        ((scheduled_node(0, BACKOFF + 1, 1), unscheduled_node(1, replacement=1)), BACKOFF + STARTUP, ()),
        (
            (scheduled_node(0, BACKOFF + 1, 1), unscheduled_node(1, replacement=1)),
            BACKOFF + STARTUP + 1,
            remove_actions(0, 1),
        ),
    ],
)
def test_a_new_leader_continues_the_release_from_the_status(
    nodes: tuple[NodeFacts, ...], at: float, actions: tuple[Action, ...]
) -> None:
    assert decide_actions(small_job(), facts(*nodes), at, status_after_release()) == actions


def test_new_pods_have_a_higher_replacement_than_all_earlier_ones() -> None:
    current = facts(scheduled_node(0, replacement=3), unscheduled_node(1, replacement=5))
    status = status_after(current, STARTUP)
    assert status.placement == Placement(releases=1, replacement=6, released_at=format_timestamp(T0 + STARTUP))
    later = facts(*(replace(node, process=ProcessFacts(ProcessState.MISSING, -1)) for node in current.nodes))
    assert decide_actions(small_job(), later, STARTUP + BACKOFF, status) == (CreateNode(0, 6), CreateNode(1, 6))


def test_a_release_is_reported_once_with_the_same_message_until_the_retry() -> None:
    current = facts(scheduled_node(0), unscheduled_node(1), unscheduled_node(2), unscheduled_node(3))
    before = status_after(current, STARTUP - 1)
    status = status_after(current, STARTUP, before)
    retry_at = format_timestamp(T0 + STARTUP + BACKOFF)
    assert status.message == (
        f"Not all 4 nodes were scheduled within startupTimeoutSeconds (60 s): muster deletes their pods and creates "
        f"them again at {retry_at}; 3 of 4 nodes: insufficient nvidia.com/gpu (digits-1: {NO_ROOM.message})"
    )
    scheduled = next(entry for entry in status.conditions if entry.type == "Scheduled")
    assert (scheduled.status, scheduled.reason, scheduled.message) == ("False", "GangReleased", status.message)
    assert status.phase == "Pending"
    no_pods = facts(*(missing_node(number) for number in range(4)))
    assert status_after(no_pods, STARTUP + 5, status).message == status.message
    (event,) = list_new_events(before, status)
    assert (event.type, event.reason, event.message) == ("Warning", "GangReleased", status.message)
    assert list_new_events(status, status_after(no_pods, STARTUP + 5, status)) == ()
    after = status_after(no_pods, STARTUP + BACKOFF + 1, status)
    assert after.message == "0 of 4 nodes are ready: digits-0, digits-1, digits-2 and 1 more do not exist yet"


def test_each_release_has_its_own_event() -> None:
    first = status_after(facts(scheduled_node(0), unscheduled_node(1)), STARTUP)
    at = STARTUP + BACKOFF + 1
    second = status_after(facts(scheduled_node(0, at, 1), unscheduled_node(1, replacement=1)), at + STARTUP, first)
    assert second.placement is not None
    assert second.placement.releases == 2
    assert ", for the 2nd time " in second.message
    (event,) = list_new_events(first, second)
    assert event.deduplication_key == "2"


def test_a_suspension_clears_the_record_of_releases() -> None:
    suspended = with_spec(small_job(), suspend=True)
    assert (
        compute_status(suspended, status_after_release(), facts(missing_node(0), missing_node(1)), T0 + 1).placement
        is None
    )


def test_an_invalid_time_of_a_release_is_in_the_past() -> None:
    status = Status(placement=Placement(releases=1, replacement=1, released_at="yesterday"))
    assert decide_actions(small_job(), facts(missing_node(0), missing_node(1)), 1, status) == (
        CreateNode(0, 1),
        CreateNode(1, 1),
    )


@given(st.uuids(), st.integers(1, 100))
def test_the_backoff_grows_up_to_its_maximum(uid: object, count: int) -> None:
    nominal = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** (count - 1))
    assert nominal / 2 <= compute_release_backoff(str(uid), count) < nominal * 1.5


@dataclass
class PlacedNode(SimulatedNode):
    """A node whose pods wait until the cluster has a machine for them."""

    last_replacement: int = -1

    def create(self, replacement: int, at: float) -> None:
        assert replacement > self.last_replacement, "a pod's name was used twice"
        self.last_replacement, self.rounds_until_start = replacement, 1
        super().create(replacement, at)

    def tick(self, now: float, first_rank: int) -> None:
        if self.process.state is not ProcessState.WAITING:
            super().tick(now, first_rank)


def nodes_in_turn(worlds: list[World]) -> Iterator[tuple[World, SimulatedNode]]:
    for number in range(len(worlds[0].nodes)):
        yield from ((world, world.nodes[number]) for world in worlds)


def schedule_pods(worlds: list[World], machines: int) -> None:
    """Schedule waiting pods, one of each job in turn, while machines are free."""
    used_machines = sum(entry.process.scheduled_at is not None for _, entry in nodes_in_turn(worlds))
    for world, entry in nodes_in_turn(worlds):
        if entry.process.state is not ProcessState.WAITING:
            continue
        if used_machines < machines:
            used_machines += 1
            entry.process = replace(
                entry.process, state=ProcessState.RUNNING, started_at=world.now, scheduled_at=world.now, problem=None
            )
        else:
            entry.process = replace(entry.process, problem=NO_ROOM)


def new_world(uid: str, nodes: int) -> World:
    a_job = job(nodes, 1, startup=STARTUP)
    job_with_uid = a_job.model_copy(update={"metadata": a_job.metadata.model_copy(update={"uid": uid})})
    return World(job_with_uid, [PlacedNode(number, 1) for number in range(nodes)])


@settings(max_examples=choose_example_count(30, share=6), deadline=None)
@given(
    st.lists(st.uuids(), min_size=2, max_size=3, unique=True),
    st.integers(2, 4),
    st.sets(st.integers(0, 200), max_size=5),
)
def test_one_of_several_partly_scheduled_gangs_gets_all_machines(
    uids: list[object], nodes: int, crashes: set[int]
) -> None:
    """There are enough machines for one job: with any order of scheduling, one job gets all of them in the end."""
    worlds = [new_world(str(uid), nodes) for uid in uids]
    for number in range(600):
        for world in worlds:
            world.now += 2
            world.run_round()
            if number in crashes:
                world.restart_operator()
        schedule_pods(worlds, machines=nodes)
        started = [world for world in worlds if world.status.start_time is not None]
        assert len(started) <= 1
        if started:
            assert all(entry.process.state is ProcessState.RUNNING for entry in started[0].nodes)
            return
    raise AssertionError("no job got all machines in 600 rounds")

"""A partly scheduled gang deletes its pods, so that of two gangs with half of the machines each, one can run."""

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
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState
from muster.core.gang_release import FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, compute_release_backoff
from muster.core.judge import judge
from muster.core.status.events import list_new_events
from support.searches import examples
from unit.core.builders import T0, UID, compute_status, facts, job, missing_node, node, ready_node
from unit.core.simulated import SimulatedNode, World

STARTUP = 60
FULL = Problem("Unschedulable", "none of 2 nodes has room: 2 lack nvidia.com/gpu", "insufficient nvidia.com/gpu")
QUOTA = Problem("QuotaExceeded", "quota team is exceeded", "quota team has no room for pods")
GATED = Problem("SchedulingGated", "a gate holds it")
WHY = "not all pods of its gang could be scheduled"


def placed(number: int, at: float = 0.0, replacement: int = 0, *, leaving: bool = False) -> NodeFacts:
    """Return a pod that was scheduled `at` seconds after the job's creation, and starts on that machine."""
    process = ProcessFacts(ProcessState.WAITING, replacement, scheduled_at=T0 + at, is_terminating=leaving)
    return node(number, process=process)


def stuck(number: int, problem: Problem | None = FULL, replacement: int = 0) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.WAITING, replacement, problem=problem))


def held(number: int) -> NodeFacts:
    return node(number, process=ProcessFacts(ProcessState.MISSING, -1, problem=QUOTA))


def small(nodes: int = 2) -> Job:
    return job(nodes, startup=STARTUP)


def decided(asked: Job, current: JobFacts, at: float, previous: Status | None = None) -> tuple[Action, ...]:
    now, before = T0 + at, previous or Status()
    return decide(asked, current, judge(asked, before, current, now), now, 1)


def status_after(current: JobFacts, at: float, previous: Status | None = None) -> Status:
    return compute_status(small(len(current.nodes)), previous or Status(), current, T0 + at)


def removed(*nodes: int) -> tuple[Action, ...]:
    return tuple(RemoveNode(number, REMOVE_GRACE_SECONDS, WHY) for number in nodes)


@pytest.mark.parametrize(
    ("known", "at", "actions"),
    [
        ((placed(0), stuck(1)), STARTUP - 1, ()),
        ((placed(0), stuck(1)), STARTUP, removed(0, 1)),
        ((placed(0, 30), placed(1, 5), stuck(2)), STARTUP + 4, ()),
        ((placed(0, 30), placed(1, 5), stuck(2)), STARTUP + 5, removed(0, 1, 2)),
        ((ready_node(0), placed(1), stuck(2)), STARTUP, removed(0, 1, 2)),
        # No job holds anything, or no job lacks anything that another could release.
        ((stuck(0), stuck(1)), STARTUP, ()),
        ((placed(0), stuck(1, None)), STARTUP, ()),
        ((placed(0), stuck(1, GATED)), STARTUP, ()),
        # A pod that is being deleted releases its machine anyway.
        ((placed(0, leaving=True), stuck(1)), STARTUP, ()),
        ((placed(0), held(1)), STARTUP, removed(0)),
    ],
)
def test_when_a_gang_gives_up(known: tuple[NodeFacts, ...], at: float, actions: tuple[Action, ...]) -> None:
    result = decided(small(len(known)), facts(*known), at)
    assert tuple(action for action in result if not isinstance(action, CreateNode)) == actions


def test_a_queue_s_gang_is_its_scheduler_s() -> None:
    asked = small()
    queued = asked.model_copy(update={"spec": asked.spec.model_copy(update={"queue": Queue(volcano="a")})})
    assert decided(queued, facts(placed(0), stuck(1)), STARTUP) == ()


def test_the_plan_wakes_for_it() -> None:
    asked, current = small(), facts(placed(0, 7), stuck(1))
    assert find_requeue_time(asked, current, judge(asked, Status(), current, T0 + 8), T0 + 8) == T0 + 7 + STARTUP


def given_up(releases: int = 1, replacement: int = 1, at: float = 0.0) -> Status:
    return Status(
        placement=Placement(releases=releases, replacement=replacement, released_at=format_timestamp(T0 + at))
    )


PAUSE = compute_release_backoff(UID, 1)


@pytest.mark.parametrize(
    ("known", "at", "actions"),
    [
        ((missing_node(0), missing_node(1)), PAUSE - 1, ()),
        ((missing_node(0), missing_node(1)), PAUSE, (CreateNode(0, 1), CreateNode(1, 1))),
        # The next leader deletes the remaining pods, and starts nothing beside them.
        ((placed(0), stuck(1)), 1, removed(0, 1)),
        ((placed(0, leaving=True), missing_node(1)), PAUSE + 1, ()),
        ((placed(0), missing_node(1)), PAUSE + 1, removed(0)),
        ((placed(0, PAUSE + 1, 1), stuck(1, replacement=1)), PAUSE + STARTUP, ()),
        ((placed(0, PAUSE + 1, 1), stuck(1, replacement=1)), PAUSE + STARTUP + 1, removed(0, 1)),
    ],
)
def test_what_follows_from_the_status_alone(
    known: tuple[NodeFacts, ...], at: float, actions: tuple[Action, ...]
) -> None:
    assert decided(small(), facts(*known), at, given_up()) == actions


def test_pods_are_made_anew_above_all_that_were() -> None:
    current = facts(placed(0, replacement=3), stuck(1, replacement=5))
    status = status_after(current, STARTUP)
    assert status.placement == Placement(releases=1, replacement=6, released_at=format_timestamp(T0 + STARTUP))
    later = facts(*(replace(node, process=ProcessFacts(ProcessState.MISSING, -1)) for node in current.nodes))
    assert decided(small(), later, STARTUP + PAUSE, status) == (CreateNode(0, 6), CreateNode(1, 6))


def test_it_is_reported_once_and_unchanged_until_it_ends() -> None:
    current = facts(placed(0), stuck(1), stuck(2), stuck(3))
    before = status_after(current, STARTUP - 1)
    status = status_after(current, STARTUP, before)
    again = format_timestamp(T0 + STARTUP + PAUSE)
    assert status.message == (
        f"Not all 4 nodes were scheduled within startupTimeoutSeconds (60 s): muster deletes their pods and creates "
        f"them again at {again}; 3 of 4 nodes: insufficient nvidia.com/gpu (digits-1: {FULL.message})"
    )
    scheduled = next(entry for entry in status.conditions if entry.type == "Scheduled")
    assert (scheduled.status, scheduled.reason, scheduled.message) == ("False", "GangReleased", status.message)
    assert status.phase == "Pending"
    gone = facts(*(missing_node(number) for number in range(4)))
    assert status_after(gone, STARTUP + 5, status).message == status.message
    (note,) = list_new_events(before, status)
    assert (note.type, note.reason, note.message) == ("Warning", "GangReleased", status.message)
    assert list_new_events(status, status_after(gone, STARTUP + 5, status)) == ()
    after = status_after(gone, STARTUP + PAUSE + 1, status)
    assert after.message == "0 of 4 nodes are ready: digits-0, digits-1, digits-2 and 1 more do not exist yet"


def test_the_next_time_is_an_event_of_its_own() -> None:
    first = status_after(facts(placed(0), stuck(1)), STARTUP)
    at = STARTUP + PAUSE + 1
    second = status_after(facts(placed(0, at, 1), stuck(1, replacement=1)), at + STARTUP, first)
    assert second.placement is not None
    assert second.placement.releases == 2
    assert ", for the 2nd time " in second.message
    (note,) = list_new_events(first, second)
    assert note.occasion == "2"


def test_a_suspended_job_begins_anew() -> None:
    asked = small()
    suspended = asked.model_copy(update={"spec": asked.spec.model_copy(update={"suspend": True})})
    assert compute_status(suspended, given_up(), facts(missing_node(0), missing_node(1)), T0 + 1).placement is None


def test_a_nonsensical_record_is_in_the_past() -> None:
    status = Status(placement=Placement(releases=1, replacement=1, released_at="yesterday"))
    assert decided(small(), facts(missing_node(0), missing_node(1)), 1, status) == (CreateNode(0, 1), CreateNode(1, 1))


@given(st.uuids(), st.integers(1, 100))
def test_pauses_grow_and_end(uid: object, count: int) -> None:
    longest = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** (count - 1))
    assert longest / 2 <= compute_release_backoff(str(uid), count) < longest * 1.5


@dataclass
class PlacedNode(SimulatedNode):
    """A node whose pods wait until the cluster has a machine for them."""

    highest: int = -1

    def create(self, replacement: int, at: float) -> None:
        assert replacement > self.highest, "a pod's name is used twice"
        self.highest, self.rounds_until_start = replacement, 1
        super().create(replacement, at)

    def tick(self, now: float, first_rank: int) -> None:
        if self.process.state is not ProcessState.WAITING:
            super().tick(now, first_rank)


def in_turn(worlds: list[World]) -> Iterator[tuple[World, SimulatedNode]]:
    for number in range(len(worlds[0].nodes)):
        yield from ((world, world.nodes[number]) for world in worlds)


def place(worlds: list[World], machines: int) -> None:
    """Schedule pod by pod, each job's next one in turn."""
    taken = sum(entry.process.scheduled_at is not None for _, entry in in_turn(worlds))
    for world, entry in in_turn(worlds):
        if entry.process.state is not ProcessState.WAITING:
            continue
        if taken < machines:
            taken += 1
            entry.process = replace(
                entry.process, state=ProcessState.RUNNING, started_at=world.now, scheduled_at=world.now, problem=None
            )
        else:
            entry.process = replace(entry.process, problem=FULL)


def world_of(uid: str, nodes: int) -> World:
    asked = job(nodes, 1, startup=STARTUP)
    named = asked.model_copy(update={"metadata": asked.metadata.model_copy(update={"uid": uid})})
    return World(named, [PlacedNode(number, 1) for number in range(nodes)])


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.uuids(), min_size=2, max_size=3, unique=True),
    st.integers(2, 4),
    st.sets(st.integers(0, 200), max_size=5),
)
def test_jobs_that_each_hold_a_part_come_apart(uids: list[object], nodes: int, crashes: set[int]) -> None:
    """There are machines for one of them: in any order of scheduling, one job gets all of them in the end."""
    worlds = [world_of(str(uid), nodes) for uid in uids]
    for number in range(600):
        for world in worlds:
            world.now += 2
            world.run_round()
            if number in crashes:
                world.restart_operator()
        place(worlds, machines=nodes)
        begun = [world for world in worlds if world.status.start_time is not None]
        assert len(begun) <= 1
        if begun:
            assert all(entry.process.state is ProcessState.RUNNING for entry in begun[0].nodes)
            return
    raise AssertionError("they hold each other up for ever")

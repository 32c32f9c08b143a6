"""With any events, and any number of kills of its operator: a job runs exactly once for each requested start."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import Action, CreateNode, SendCommand
from muster.core.failure.problems import LOST_SECONDS
from muster_worker.contract.schema import CommandKind
from support.searches import examples
from unit.core.builders import job
from unit.core.simulated import NOT_READY_SECONDS, SimulatedNode, World

SHORT_CUT_SECONDS = 90.0
"""Kubernetes has marked the machine as NotReady by then, and muster does not count it as lost yet."""

NODES = st.integers(0, 2)
HARMLESS_EVENTS = st.one_of(
    st.tuples(st.sampled_from(("suspend", "resume", "forget")), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, 4)),
    st.tuples(st.just("wait"), st.integers(0, 40)),
    st.tuples(st.just("delay"), NODES),
    st.tuples(st.just("short cut"), NODES),
)
FAULTS = st.one_of(st.tuples(st.sampled_from(("lose", "delete", "fail", "cut", "cut", "heal")), NODES))
EVENT_LISTS = st.lists(st.tuples(st.one_of(HARMLESS_EVENTS, HARMLESS_EVENTS, FAULTS), st.integers(1, 6)), max_size=10)
HARMLESS_EVENT_LISTS = st.lists(st.tuples(HARMLESS_EVENTS, st.integers(1, 6)), max_size=12)


def condition_status(status: Status, kind: str) -> str:
    return next((entry.status for entry in status.conditions if entry.type == kind), "Unknown")


def with_suspend(world: World, *, suspend: bool) -> Job:
    return world.job.model_copy(update={"spec": world.job.spec.model_copy(update={"suspend": suspend})})


def check_round(world: World, before: Status, actions: Sequence[Action]) -> None:
    living = {node.attempt for node in world.nodes if node.has_running_ranks}
    assert len(living) <= 1, "two attempts run at once"
    for node in world.nodes:
        assert len(set(node.started_attempts)) == len(node.started_attempts), "an attempt is started twice"
    assert all(number <= world.status.attempt for node in world.nodes for number in node.started_attempts)
    starts = [
        action for action in actions if isinstance(action, SendCommand) and action.command.kind == CommandKind.START
    ]
    assert all(start.command.attempt == world.status.attempt for start in starts)
    assert not starts or world.status.start_time is not None
    if before.final_condition is not None or condition_status(world.status, "Suspended") == "True":
        assert not starts
        assert not any(isinstance(action, CreateNode) for action in actions)
    if before.final_condition is not None:
        assert world.status == before
    if condition_status(world.status, "Suspended") == "True":
        assert not living
        assert world.status.start_time is None
    assert world.status.attempt >= before.attempt


def run_rounds(world: World, rounds: int = 1, *, applied: int | None = None) -> None:
    for _ in range(rounds):
        before = world.status
        check_round(world, before, world.run_round(applied=applied))


def apply_event(world: World, kind: str, value: int) -> None:
    if kind in ("suspend", "resume"):
        world.job = with_suspend(world, suspend=kind == "suspend")
    elif kind == "forget":
        world.restart_operator()
    elif kind == "crash":
        run_rounds(world, applied=value)
    elif kind == "wait":
        world.now += value
    elif kind == "delay":
        world.nodes[value].rounds_until_start = 3
    else:
        apply_fault(world, kind, value)


def apply_fault(world: World, kind: str, number: int) -> None:
    """An event on one node."""
    node = world.nodes[number]
    if kind == "lose":
        world.kill_container(number)
    elif kind == "delete":
        node.delete(world.now, 30.0)
    elif kind == "cut":
        node.disconnect(world.now)
    elif kind == "heal":
        node.reconnect(world.now)
    elif kind == "short cut":
        disconnect_for(world, number, SHORT_CUT_SECONDS)
    else:
        for rank in node.ranks[:1]:
            rank.end(world.now, 7, None, "ValueError: bad label")


def disconnect_for(world: World, number: int, seconds: float) -> None:
    """Disconnect a machine, and reconnect it."""
    world.nodes[number].disconnect(world.now)
    until = world.now + seconds
    while world.now < until:
        world.now += 5
        run_rounds(world)
    world.nodes[number].reconnect(world.now)


def lose_machines(world: World, *numbers: int) -> None:
    """Cut the nodes off until Kubernetes reports their machines as not ready and muster counts them as lost."""
    for number in numbers:
        world.nodes[number].disconnect(world.now)
    run_rounds(world)
    world.now += NOT_READY_SECONDS
    run_rounds(world, 2)
    world.now += LOST_SECONDS + 2


def run_to_the_end(world: World) -> None:
    """No further suspensions and events, and the ranks succeed.

    A disconnected machine remains so, unless muster asks to power it off: if all nodes of the last attempt are cut off,
    their ranks may still run.
    """
    world.job = with_suspend(world, suspend=False)
    for _ in range(40):
        run_rounds(world)
        if "power off its machine" in world.status.message:
            for node in world.nodes:
                if node.is_disconnected:
                    node.remove_machine(world.now)
        if any(node.is_disconnected for node in world.nodes):
            world.now += 10
        members = [node for node in world.nodes if node.ranks and node.attempt == world.status.attempt]
        if len(members) == world.job.spec.nodes:
            for node in members:
                for rank in node.ranks:
                    rank.end(world.now, 0, None)
        if world.status.final_condition is not None:
            break
        world.now += 1
    run_rounds(world, 5)


def new_world(
    *, policy: str = "Running", after: int | None = None, failure_policy: FailurePolicy | None = None
) -> World:
    plain = job(3, 2, startup=86400)
    changes = {"clean_pod_policy": policy, "ttl_seconds_after_finished": after, "failure_policy": failure_policy}
    spec = plain.spec.model_copy(update=changes)
    return World(plain.model_copy(update={"spec": spec}), [SimulatedNode(number, 2) for number in range(3)])


FAILED_POD_DELETED = ((("lose", 0), 1), (("lose", 0), 1), (("delete", 0), 1))
"""A pod fails before the first attempt, and is deleted while the others are being stopped."""

# A run takes a tenth of a second: make test tries some, make test-long many.
ANY_RUN = given(events=EVENT_LISTS, first=st.integers(0, 4), policy=st.sampled_from(("Running", "All", "None")))


@settings(max_examples=examples(60), deadline=None)
@example(events=FAILED_POD_DELETED, first=0, policy="Running")
@ANY_RUN
def test_a_job_runs_once_and_ends(events: Sequence[tuple[tuple[str, int], int]], first: int, policy: str) -> None:
    check_run(events, first, policy)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@ANY_RUN
def test_many_jobs_run_once_and_end(events: Sequence[tuple[tuple[str, int], int]], first: int, policy: str) -> None:
    check_run(events, first, policy)


def check_run(events: Sequence[tuple[tuple[str, int], int]], first: int, policy: str) -> None:
    """Apply the events: the job runs once, and ends."""
    world = new_world(policy=policy, after=60)
    run_rounds(world, first)
    for event, rounds in events:
        apply_event(world, *event)
        run_rounds(world, rounds)
    run_to_the_end(world)

    assert world.status.final_condition is not None
    if condition_status(world.status, "Complete") == "True":
        ends = [(node.attempt, rank.exit_code, rank.stopped) for node in world.nodes for rank in node.ranks]
        assert ends == [(world.status.attempt, 0, False)] * 6
    # This long after the end the resource and all its objects are deleted.
    world.now += 61
    run_rounds(world, 3)
    assert world.is_deleted


@settings(max_examples=examples(150), deadline=None)
@given(events=HARMLESS_EVENT_LISTS, first=st.integers(0, 4))
def test_an_undisturbed_job_completes(events: Sequence[tuple[tuple[str, int], int]], first: int) -> None:
    world = new_world()
    run_rounds(world, first)
    for event, rounds in events:
        apply_event(world, *event)
        run_rounds(world, rounds)
    run_to_the_end(world)

    assert condition_status(world.status, "Complete") == "True", world.status.message


def test_the_operator_was_away_for_the_whole_run() -> None:
    world = new_world()
    run_rounds(world, 3)
    for node in world.nodes:
        assert node.ranks
        for rank in node.ranks:
            rank.end(world.now, 0, None)
        node.exit(world.now, 0, None)
    world.restart_operator()
    run_rounds(world)

    assert condition_status(world.status, "Complete") == "True"
    assert world.status.ranks is not None
    assert [(entry.state, entry.ranks) for entry in world.status.ranks.by_state] == [("Succeeded", "0-5")]

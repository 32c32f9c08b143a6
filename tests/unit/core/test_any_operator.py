"""With any events and any kills of the operator, a job runs exactly once for each requested start."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import Action, CreateNode, SendCommand
from muster.core.failure.problems import LOST_SECONDS
from muster.core.fence import OLD_POD_MAY_RUN
from muster_worker.contract.schema import CommandKind
from support.searches import choose_example_count
from unit.core.builders import job, with_spec
from unit.core.simulated import NOT_READY_SECONDS, SimulatedNode, World

SHORT_DISCONNECTION_SECONDS = 90.0
"""Kubernetes marks the machine as NotReady in this time, but muster does not count it as lost."""

NODES = st.integers(0, 2)
HARMLESS_EVENTS = st.one_of(
    st.tuples(st.sampled_from(("suspend", "resume", "restart operator")), st.just(0)),
    st.tuples(st.just("kill operator"), st.integers(0, 4)),
    st.tuples(st.just("wait"), st.integers(0, 40)),
    st.tuples(st.just("delay pod"), NODES),
    st.tuples(st.just("disconnect shortly"), NODES),
)
FAULTS = st.one_of(
    st.tuples(
        st.sampled_from(("kill container", "delete pod", "fail rank", "disconnect", "disconnect", "reconnect")), NODES
    )
)
EVENT_LISTS = st.lists(st.tuples(st.one_of(HARMLESS_EVENTS, HARMLESS_EVENTS, FAULTS), st.integers(1, 6)), max_size=10)
HARMLESS_EVENT_LISTS = st.lists(st.tuples(HARMLESS_EVENTS, st.integers(1, 6)), max_size=12)


def condition_status(status: Status, kind: str) -> str:
    return next((entry.status for entry in status.conditions if entry.type == kind), "Unknown")


def with_suspend(world: World, *, suspend: bool) -> Job:
    return with_spec(world.job, suspend=suspend)


def check_round(world: World, before: Status, actions: Sequence[Action]) -> None:
    running_attempts = {node.attempt for node in world.nodes if node.has_running_ranks}
    assert len(running_attempts) <= 1, "two attempts run at once"
    for node in world.nodes:
        assert len(set(node.started_attempts)) == len(node.started_attempts), "an attempt was started twice"
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
        assert not running_attempts
        assert world.status.start_time is None
    assert world.status.attempt >= before.attempt


def run_rounds(world: World, rounds: int = 1, *, applied: int | None = None) -> None:
    for _ in range(rounds):
        before = world.status
        check_round(world, before, world.run_round(applied=applied))


def apply_event(world: World, kind: str, value: int) -> None:
    if kind in ("suspend", "resume"):
        world.job = with_suspend(world, suspend=kind == "suspend")
    elif kind == "restart operator":
        world.restart_operator()
    elif kind == "kill operator":
        run_rounds(world, applied=value)
    elif kind == "wait":
        world.now += value
    elif kind == "delay pod":
        world.nodes[value].rounds_until_start = 3
    else:
        apply_fault(world, kind, value)


def apply_fault(world: World, kind: str, number: int) -> None:
    """Apply an event to one node."""
    node = world.nodes[number]
    if kind == "kill container":
        world.kill_container(number)
    elif kind == "delete pod":
        node.delete(world.now, 30.0)
    elif kind == "disconnect":
        node.disconnect(world.now)
    elif kind == "reconnect":
        node.reconnect(world.now)
    elif kind == "disconnect shortly":
        disconnect_for(world, number, SHORT_DISCONNECTION_SECONDS)
    else:
        for rank in node.ranks[:1]:
            rank.end(world.now, 7, None, "ValueError: bad label")


def disconnect_for(world: World, number: int, seconds: float) -> None:
    """Disconnect a machine, run rounds for this time, and reconnect it."""
    world.nodes[number].disconnect(world.now)
    deadline = world.now + seconds
    while world.now < deadline:
        world.now += 5
        run_rounds(world)
    world.nodes[number].reconnect(world.now)


def lose_machines(world: World, *numbers: int) -> None:
    """Disconnect these nodes until Kubernetes marks their machines as NotReady and muster counts them as lost."""
    for number in numbers:
        world.nodes[number].disconnect(world.now)
    run_rounds(world)
    world.now += NOT_READY_SECONDS
    run_rounds(world, 2)
    world.now += LOST_SECONDS + 2


def run_to_the_end(world: World) -> None:
    """Let the ranks succeed without further events.

    A disconnected machine is removed only if the status asks to power it off. It asks for that if all nodes of the last
    attempt are disconnected, because their ranks may still run.
    """
    world.job = with_suspend(world, suspend=False)
    for _ in range(40):
        run_rounds(world)
        if any(entry.reason == OLD_POD_MAY_RUN for entry in world.status.conditions):
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
    *, clean_pod_policy: str = "Running", ttl_seconds: int | None = None, failure_policy: FailurePolicy | None = None
) -> World:
    plain = job(3, 2, startup=86400)
    changes = {
        "clean_pod_policy": clean_pod_policy,
        "ttl_seconds_after_finished": ttl_seconds,
        "failure_policy": failure_policy,
    }
    return World(with_spec(plain, **changes), [SimulatedNode(number, 2) for number in range(3)])


FAILED_POD_DELETED = ((("kill container", 0), 1), (("kill container", 0), 1), (("delete pod", 0), 1))
"""A pod fails before the first attempt, and is deleted while the others are being stopped."""

# A run takes a tenth of a second: `make test` runs some examples, `make test-long` many.
ANY_RUN = given(
    events=EVENT_LISTS, rounds_before=st.integers(0, 4), clean_pod_policy=st.sampled_from(("Running", "All", "None"))
)


@settings(max_examples=choose_example_count(60, share=6), deadline=None)
@example(events=FAILED_POD_DELETED, rounds_before=0, clean_pod_policy="Running")
@ANY_RUN
def test_a_job_runs_once_and_ends(
    events: Sequence[tuple[tuple[str, int], int]], rounds_before: int, clean_pod_policy: str
) -> None:
    check_run(events, rounds_before, clean_pod_policy)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@ANY_RUN
def test_many_jobs_run_once_and_end(
    events: Sequence[tuple[tuple[str, int], int]], rounds_before: int, clean_pod_policy: str
) -> None:
    check_run(events, rounds_before, clean_pod_policy)


def check_run(events: Sequence[tuple[tuple[str, int], int]], rounds_before: int, clean_pod_policy: str) -> None:
    """Apply the events to a job. Check that it runs once and ends."""
    world = new_world(clean_pod_policy=clean_pod_policy, ttl_seconds=60)
    run_rounds(world, rounds_before)
    for event, rounds in events:
        apply_event(world, *event)
        run_rounds(world, rounds)
    run_to_the_end(world)

    assert world.status.final_condition is not None
    if condition_status(world.status, "Complete") == "True":
        ends = [(node.attempt, rank.exit_code, rank.stopped) for node in world.nodes for rank in node.ranks]
        assert ends == [(world.status.attempt, 0, False)] * 6
    # After the TTL muster deletes the resource and all its objects.
    world.now += 61
    run_rounds(world, 3)
    assert world.is_deleted


@settings(max_examples=choose_example_count(150, share=8), deadline=None)
@given(events=HARMLESS_EVENT_LISTS, rounds_before=st.integers(0, 4))
def test_a_job_with_harmless_events_completes(
    events: Sequence[tuple[tuple[str, int], int]], rounds_before: int
) -> None:
    world = new_world()
    run_rounds(world, rounds_before)
    for event, rounds in events:
        apply_event(world, *event)
        run_rounds(world, rounds)
    run_to_the_end(world)

    assert condition_status(world.status, "Complete") == "True", world.status.message


def test_a_job_completes_although_no_operator_ran_until_its_end() -> None:
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

"""Lost machines: when muster counts one as lost, and what happens to the job."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import KillNode
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS, NODE_SILENT, find_loss_time
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase
from unit.core.builders import (
    HEARTBEAT_SECONDS,
    START,
    agent,
    compute_status,
    exited_launcher,
    exited_rank,
    facts,
    finished_node,
    job,
    mpi_job,
    node,
    rank,
    rank_without_peer,
    ready_node,
    running_node,
    stopped_rank,
    with_spec,
)
from unit.core.simulated import NOT_READY_SECONDS, SimulatedNode, World

NOT_READY_AT = START + 50
LOST_AT = NOT_READY_AT + LOST_SECONDS


def disconnected_node(
    current: NodeFacts,
    at: float | None = NOT_READY_AT,
    *,
    deletion_deadline: float | None = None,
    reported_at: float = 0.0,
) -> NodeFacts:
    """Return the same node on a machine that is NotReady since `at`. Its last report came `reported_at` seconds after
    the start.
    """
    name, machine = f"{current.name}-0", f"machine-{current.node}"
    process = replace(
        current.process,
        name=name,
        kube_node=machine,
        unreachable_since=at,
        deletion_deadline=deletion_deadline,
        is_terminating=deletion_deadline is not None,
    )
    agent_facts = None if current.agent is None else replace(current.agent, last_report_at=START + reported_at)
    return replace(current, process=process, agent=agent_facts)


def with_report_at(current: NodeFacts, at: float) -> NodeFacts:
    assert current.agent is not None
    return replace(current, agent=replace(current.agent, last_report_at=START + at))


SECOND_NODE = running_node(1, rank(2), rank(3))

TIMES: tuple[tuple[str, NodeFacts, float | None], ...] = (
    ("the machine is Ready", disconnected_node(SECOND_NODE, None), None),
    ("NotReady, and the last report was earlier", disconnected_node(SECOND_NODE), LOST_AT),
    (
        "NotReady, and the last report was later",
        disconnected_node(SECOND_NODE, reported_at=70),
        START + 70 + LOST_SECONDS,
    ),
    (
        "its deletion is overdue",
        disconnected_node(SECOND_NODE, None, deletion_deadline=START + 20),
        START + 20 + LOST_SECONDS,
    ),
    (
        "NotReady, and its deletion was overdue before",
        disconnected_node(SECOND_NODE, deletion_deadline=START + 20),
        START + 20 + LOST_SECONDS,
    ),
    (
        "its ranks have ended, but the next attempt needs its agent",
        disconnected_node(finished_node(1, exited_rank(2, 3, 0), exited_rank(3, 3, 0))),
        LOST_AT,
    ),
    (
        "its ranks have ended, and its deletion is overdue",
        disconnected_node(finished_node(1, exited_rank(2, 3, 0), exited_rank(3, 3, 0)), deletion_deadline=START + 9),
        START + 9 + LOST_SECONDS,
    ),
    ("its agent has never reported", disconnected_node(node(1)), LOST_AT),
)


@pytest.mark.parametrize(("node_facts", "at"), [case[1:] for case in TIMES], ids=[case[0] for case in TIMES])
def test_a_node_is_lost_only_if_both_kubernetes_and_its_agent_are_silent(
    node_facts: NodeFacts, at: float | None
) -> None:
    assert find_loss_time(node_facts, facts(running_node(0, rank(0)), node_facts)) == at


def test_a_longer_heartbeat_delays_the_loss_of_a_node() -> None:
    current = replace(facts(disconnected_node(SECOND_NODE, reported_at=45)), heartbeat_seconds=30.0)
    assert find_loss_time(current.nodes[0], current) == START + 45 + 3 * 30.0


def test_silence_is_judged_by_the_interval_that_the_agent_was_told() -> None:
    told_node = running_node(1, rank(2), rank(3), reported_at=0)
    assert told_node.agent is not None
    told_node = replace(told_node, agent=replace(told_node.agent, heartbeat_seconds=30.0))
    current = replace(facts(running_node(0, rank(0), rank(1)), told_node), heartbeat_seconds=1.0)

    assert not current.is_silent(told_node, START + 30)
    assert current.is_silent(told_node, START + 90)
    lost_node = disconnected_node(told_node, START)
    assert find_loss_time(lost_node, current) == START + 90


def test_a_new_operator_gives_agents_time_to_report() -> None:
    current = replace(facts(disconnected_node(SECOND_NODE)), collector_started_at=START + 200)
    assert find_loss_time(current.nodes[0], current) == START + 200 + LOST_SECONDS


def status_after(current: JobFacts, now: float, *, previous: Status | None = None, a_job: Job | None = None) -> Status:
    return compute_status(a_job or job(), previous or Status(), current, now)


def running_status() -> Status:
    return status_after(facts(running_node(0, rank(0), rank(1)), SECOND_NODE), START + 1)


def test_a_lost_machine_fails_the_job_while_its_pod_still_exists() -> None:
    first_node = running_node(0, rank(0), rank(1), reported_at=109)
    before = status_after(facts(first_node, disconnected_node(SECOND_NODE)), LOST_AT - 1, previous=running_status())
    assert before.final_condition is None
    after = status_after(facts(first_node, disconnected_node(SECOND_NODE)), LOST_AT, previous=before)
    assert after.phase == "Stopping"
    assert after.message.startswith(
        "digits-1: machine-1 is lost: neither the cluster nor muster had a report of pod digits-1-0 for at least 60 s"
        " (at 2025-11-21T04:06:55Z); "
    )
    ended_node = finished_node(0, stopped_rank(0, 111), stopped_rank(1, 111))
    end_status = status_after(
        facts(ended_node, disconnected_node(SECOND_NODE, deletion_deadline=LOST_AT + 1)), LOST_AT + 2, previous=after
    )
    final = end_status.final_condition
    assert final is not None
    assert (final.type, final.reason) == ("Failed", "NodeLost")
    assert end_status.ranks is not None
    assert [(entry.state, entry.ranks) for entry in end_status.ranks.by_state] == [
        ("Failed", "2-3"),
        ("Stopped", "0-1"),
    ]


@pytest.mark.parametrize(
    ("rank_end", "reason"),
    [
        (exited_rank(0, 5, exit_code=7, lines=("ValueError: bad label",)), "RankFailed"),
        (exited_rank(0, 105, exit_code=7, lines=("ValueError: bad label",)), "RankFailed"),
        # Its output says that it lost a peer.
        (rank_without_peer(0, 5), "NodeLost"),
        (rank_without_peer(0, 105), "NodeLost"),
    ],
)
def test_the_first_failure_is_the_root_cause(rank_end: object, reason: str) -> None:
    failed = with_report_at(running_node(0, rank_end, rank(1)), 110)  # type: ignore[arg-type]
    status = status_after(facts(failed, disconnected_node(SECOND_NODE)), LOST_AT + 1, previous=running_status())
    assert status.phase == "Stopping"
    assert ("NodeLost" if "is lost" in status.message else "RankFailed") == reason


@pytest.mark.parametrize("has_output", [True, False])
def test_a_lost_node_is_the_cause_when_mpirun_ends_the_ranks(*, has_output: bool) -> None:
    lines = ("ORTE has lost communication with a remote daemon.", "the remote node and daemon is no longer reachable")
    mpirun = exited_launcher(21, exit_code=1, lines=lines, name="mpirun") if has_output else None
    killed = finished_node(0, exited_rank(0, 20, signal=15), exited_rank(1, 20.5, signal=9), launcher=mpirun)
    status = status_after(
        facts(killed, disconnected_node(SECOND_NODE)), LOST_AT + 1, previous=running_status(), a_job=mpi_job()
    )
    assert status.message.startswith("digits-1: machine-1 is lost"), status.message
    failed = finished_node(
        0,
        exited_rank(0, 5, exit_code=7, lines=("ValueError: bad label",)),
        exited_rank(1, 5.5, signal=15),
        launcher=mpirun,
    )
    status = status_after(
        facts(failed, disconnected_node(SECOND_NODE)), LOST_AT + 1, previous=running_status(), a_job=mpi_job()
    )
    assert status.message.startswith("Rank 0 on digits-0 failed with exit code 7: ValueError: bad label")


def test_a_short_disconnection_does_not_end_the_job() -> None:
    status = status_after(
        facts(running_node(0, rank(0), rank(1), reported_at=99), disconnected_node(SECOND_NODE, reported_at=99)),
        LOST_AT - 10,
        previous=running_status(),
    )
    assert status.phase == "Running"
    assert next(entry for entry in status.conditions if entry.type == "Stalled").status == "False"


def test_a_silent_agent_sets_the_condition_stalled() -> None:
    first_node = with_report_at(running_node(0, rank(0), rank(1)), 15)
    status = status_after(
        facts(first_node, disconnected_node(SECOND_NODE, None)),
        START + 3 * HEARTBEAT_SECONDS,
        previous=running_status(),
    )
    stalled = next(entry for entry in status.conditions if entry.type == "Stalled")
    assert (stalled.status, stalled.reason) == ("True", NODE_SILENT)
    assert "`kubectl get node machine-1`" in stalled.message
    assert status.message.count("has not reported since") == 1
    recovered = status_after(
        facts(with_report_at(first_node, 20), disconnected_node(SECOND_NODE, None, reported_at=20)),
        START + 21,
        previous=status,
    )
    assert next(entry for entry in recovered.conditions if entry.type == "Stalled").reason == "NoProblemKnown"


def test_a_silent_local_agent_does_not_set_the_condition_stalled() -> None:
    status = status_after(
        facts(with_report_at(running_node(0, rank(0), rank(1)), 15), SECOND_NODE), START + 20, previous=running_status()
    )
    assert next(entry for entry in status.conditions if entry.type == "Stalled").status == "False"


def test_a_job_succeeds_if_its_machine_is_lost_after_all_ranks_succeeded() -> None:
    succeeded = [exited_rank(number, 30, exit_code=0) for number in range(4)]
    current = disconnected_node(node(1, agent(1, AgentPhase.RUNNING, succeeded[2:])))
    status = status_after(facts(finished_node(0, *succeeded[:2]), current), LOST_AT + 1, previous=running_status())
    assert status.phase == "Succeeded"


def test_a_node_that_is_lost_before_the_start_is_replaced() -> None:
    world = new_world()
    world.nodes[1].rounds_until_start = 10_000
    run_for(world, 20)
    world.nodes[2].disconnect(world.now)
    run_for(world, NOT_READY_SECONDS + LOST_SECONDS + 10)
    assert world.nodes[2].process.replacement == 1
    assert not world.nodes[2].is_disconnected
    world.nodes[1].rounds_until_start = 0
    run_for(world, 10)
    assert world.status.phase == "Running"


def test_a_node_that_is_lost_before_the_start_is_not_replaced_after_the_startup_timeout() -> None:
    world = World(job(2, 2, startup=60), [SimulatedNode(number, 2) for number in range(2)])
    world.nodes[1].rounds_until_start = 3
    world.run_round()
    world.nodes[0].disconnect(world.now)
    phases = set()
    for _ in range(250):
        world.now += 0.9
        world.run_round()
        phases.add(world.status.phase)
    assert phases == {"Pending", "Starting", "Stopping", "Failed"}
    assert [entry.process.replacement for entry in world.nodes] == [0, 0]


def new_world(deadline: int | None = None) -> World:
    return World(job(3, 2, startup=86400, deadline=deadline), [SimulatedNode(number, 2) for number in range(3)])


def run_for(world: World, seconds: float) -> None:
    deadline = world.now + seconds
    while world.now < deadline:
        world.now += 1.9
        world.run_round()


@pytest.mark.parametrize("event", ["suspend", "deadline", "failure", "none"])
def test_a_lost_machine_does_not_keep_the_job_from_suspending_or_ending(event: str) -> None:
    world = new_world(deadline=100 if event == "deadline" else None)
    run_for(world, 20)
    world.nodes[1].disconnect(world.now)
    if event == "suspend":
        world.job = with_spec(world.job, suspend=True)
    if event == "failure":
        world.nodes[0].ranks[0].end(world.now + 5, 7, None, "ValueError: bad label")
    run_for(world, 150)
    phase, reason = {
        "suspend": ("Suspended", "Suspended"),
        "deadline": ("Failed", "DeadlineExceeded"),
        "failure": ("Failed", "RankFailed"),
        "none": ("Failed", "NodeLost"),
    }[event]
    assert world.status.phase == phase
    assert reason in {entry.reason for entry in world.status.conditions if entry.status == "True"}
    assert world.nodes[1].process.is_terminating
    if event == "suspend":
        world.job = with_spec(world.job, suspend=False)
        run_for(world, 10)
        assert world.status.phase == "Running"
        assert [entry.process.replacement for entry in world.nodes] == [1, 1, 1]


def test_a_lost_machine_that_returns_does_not_change_the_failure() -> None:
    world = new_world()
    run_for(world, 20)
    world.nodes[0].is_frozen = True  # so that the job does not end at once
    world.nodes[1].disconnect(world.now)
    while world.status.phase != "Stopping":
        run_for(world, 1)
    message = world.status.message.split(";")[0]
    world.nodes[1].reconnect(world.now)
    run_for(world, 60)
    assert world.status.phase == "Failed"
    assert world.status.message.split(";")[0] == message


def test_the_pod_of_a_lost_machine_is_deleted_once() -> None:
    world = new_world()
    run_for(world, 20)
    world.nodes[1].disconnect(world.now)
    kill_count = 0
    for _ in range(300):
        world.now += 0.9
        kill_count += sum(isinstance(action, KillNode) for action in world.run_round())
    assert kill_count == 1


def test_ranks_of_a_deleted_pod_are_not_pending() -> None:
    deleted_node = replace(
        node(1),
        process=replace(
            node(1).process, state=ProcessState.MISSING, problem=Problem("PodDeleted", "a user deleted it")
        ),
    )
    status = status_after(facts(running_node(0, rank(0), rank(1)), deleted_node), START + 9, previous=running_status())
    assert status.ranks is not None
    assert "Pending" not in {entry.state for entry in status.ranks.by_state}


def test_a_gang_does_not_start_while_a_ready_node_is_silent() -> None:
    silent = disconnected_node(ready_node(1), None, reported_at=-60)
    assert status_after(facts(ready_node(0), silent), START + 1).start_time is None

"""A lost machine: when it counts as lost, and what happens to the job."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import KillNode
from muster.core.facts import JobFacts, NodeFacts, Problem, ProcessState
from muster.core.failure.problems import LOST_SECONDS, NODE_SILENT, lost_at
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
)
from unit.core.simulated import NOT_READY_SECONDS, SimulatedNode, World

NOT_READY = START + 50
DUE = NOT_READY + LOST_SECONDS


def cut(
    current: NodeFacts, at: float | None = NOT_READY, *, deletion_deadline: float | None = None, heard: float = 0.0
) -> NodeFacts:
    """Return the node with its last report `heard` seconds after the start, from which nothing is known since
    `at`.
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
    agent_facts = None if current.agent is None else replace(current.agent, last_report_at=START + heard)
    return replace(current, process=process, agent=agent_facts)


def heard(current: NodeFacts, at: float) -> NodeFacts:
    assert current.agent is not None
    return replace(current, agent=replace(current.agent, last_report_at=START + at))


TWO = running_node(1, rank(2), rank(3))

TIMES: tuple[tuple[str, NodeFacts, float | None], ...] = (
    ("nobody doubts the machine", cut(TWO, None), None),
    ("NotReady, and silent from before", cut(TWO), DUE),
    ("NotReady, and its agent was heard after that", cut(TWO, heard=70), START + 70 + LOST_SECONDS),
    ("its deletion is overdue", cut(TWO, None, deletion_deadline=START + 20), START + 20 + LOST_SECONDS),
    ("what comes first counts", cut(TWO, deletion_deadline=START + 20), START + 20 + LOST_SECONDS),
    (
        "its ranks have ended: the next attempt needs its agent",
        cut(finished_node(1, exited_rank(2, 3, 0), exited_rank(3, 3, 0))),
        DUE,
    ),
    (
        "the same, and the pod stays",
        cut(finished_node(1, exited_rank(2, 3, 0), exited_rank(3, 3, 0)), deletion_deadline=START + 9),
        START + 9 + LOST_SECONDS,
    ),
    ("its agent was never heard", cut(node(1)), DUE),
)


@pytest.mark.parametrize(("known", "at"), [case[1:] for case in TIMES], ids=[case[0] for case in TIMES])
def test_two_have_to_agree_that_a_machine_is_lost(known: NodeFacts, at: float | None) -> None:
    assert lost_at(known, facts(running_node(0, rank(0)), known)) == at


def test_the_heartbeat_of_many_agents_is_waited_for() -> None:
    current = replace(facts(cut(TWO, heard=45)), heartbeat_seconds=30.0)
    assert lost_at(current.nodes[0], current) == START + 45 + 3 * 30.0


def test_an_operator_that_has_just_begun_gives_agents_the_time_to_speak() -> None:
    current = replace(facts(cut(TWO)), collector_started_at=START + 200)
    assert lost_at(current.nodes[0], current) == START + 200 + LOST_SECONDS


def status_after(current: JobFacts, now: float, *, previous: Status | None = None, of: Job | None = None) -> Status:
    return compute_status(of or job(), previous or Status(), current, now)


def begun() -> Status:
    return status_after(facts(running_node(0, rank(0), rank(1)), TWO), START + 1)


def test_the_loss_of_a_machine_ends_the_job_while_its_pod_is_still_there() -> None:
    survivors = running_node(0, rank(0), rank(1), heard=109)
    before = status_after(facts(survivors, cut(TWO)), DUE - 1, previous=begun())
    assert before.final_condition is None
    after = status_after(facts(survivors, cut(TWO)), DUE, previous=before)
    assert after.phase == "Stopping"
    assert after.message.startswith(
        "digits-1: machine-1 is lost: neither the cluster nor muster had a report of pod digits-1-0 for at least 60 s"
        " (at 2025-11-21T04:06:55Z); "
    )
    settled = finished_node(0, stopped_rank(0, 111), stopped_rank(1, 111))
    over = status_after(facts(settled, cut(TWO, deletion_deadline=DUE + 1)), DUE + 2, previous=after)
    final = over.final_condition
    assert final is not None
    assert (final.type, final.reason) == ("Failed", "NodeLost")
    assert over.ranks is not None
    assert [(entry.state, entry.ranks) for entry in over.ranks.by_state] == [("Failed", "2-3"), ("Stopped", "0-1")]


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (exited_rank(0, 5, exit_code=7, lines=("ValueError: bad label",)), "RankFailed"),
        (exited_rank(0, 105, exit_code=7, lines=("ValueError: bad label",)), "RankFailed"),
        # its output is that of a rank whose peer has ended
        (rank_without_peer(0, 5), "NodeLost"),
        (rank_without_peer(0, 105), "NodeLost"),
    ],
)
def test_who_failed_first_is_the_cause(first: object, reason: str) -> None:
    failed = heard(running_node(0, first, rank(1)), 110)  # type: ignore[arg-type]
    status = status_after(facts(failed, cut(TWO)), DUE + 1, previous=begun())
    assert status.phase == "Stopping"
    assert ("NodeLost" if "is lost" in status.message else "RankFailed") == reason


@pytest.mark.parametrize("explained", [True, False])
def test_mpirun_ends_its_ranks_because_a_node_is_lost(*, explained: bool) -> None:
    lines = ("ORTE has lost communication with a remote daemon.", "the remote node and daemon is no longer reachable")
    mpirun = exited_launcher(21, exit_code=1, lines=lines, name="mpirun") if explained else None
    killed = finished_node(0, exited_rank(0, 20, signal=15), exited_rank(1, 20.5, signal=9), launched=mpirun)
    status = status_after(facts(killed, cut(TWO)), DUE + 1, previous=begun(), of=mpi_job())
    assert status.message.startswith("digits-1: machine-1 is lost"), status.message
    own = finished_node(
        0,
        exited_rank(0, 5, exit_code=7, lines=("ValueError: bad label",)),
        exited_rank(1, 5.5, signal=15),
        launched=mpirun,
    )
    status = status_after(facts(own, cut(TWO)), DUE + 1, previous=begun(), of=mpi_job())
    assert status.message.startswith("Rank 0 on digits-0 failed with exit code 7: ValueError: bad label")


def test_a_cut_that_heals_in_time_ends_nothing() -> None:
    status = status_after(
        facts(running_node(0, rank(0), rank(1), heard=99), cut(TWO, heard=99)), DUE - 10, previous=begun()
    )
    assert status.phase == "Running"
    assert next(entry for entry in status.conditions if entry.type == "Stalled").status == "False"


def test_a_silent_agent_stalls_its_job() -> None:
    survivors = heard(running_node(0, rank(0), rank(1)), 15)
    status = status_after(facts(survivors, cut(TWO, None)), START + 3 * HEARTBEAT_SECONDS, previous=begun())
    stalled = next(entry for entry in status.conditions if entry.type == "Stalled")
    assert (stalled.status, stalled.reason) == ("True", NODE_SILENT)
    assert "`kubectl get node machine-1`" in stalled.message
    assert status.message.count("has not reported since") == 1
    back = status_after(facts(heard(survivors, 20), cut(TWO, None, heard=20)), START + 21, previous=status)
    assert next(entry for entry in back.conditions if entry.type == "Stalled").reason == "NoProblemKnown"


def test_a_silent_agent_on_this_machine_is_a_busy_one() -> None:
    status = status_after(facts(heard(running_node(0, rank(0), rank(1)), 15), TWO), START + 20, previous=begun())
    assert next(entry for entry in status.conditions if entry.type == "Stalled").status == "False"


def test_done_is_done_on_a_machine_that_is_lost() -> None:
    succeeded = [exited_rank(number, 30, exit_code=0) for number in range(4)]
    current = cut(node(1, agent(1, AgentPhase.RUNNING, succeeded[2:])))
    status = status_after(facts(finished_node(0, *succeeded[:2]), current), DUE + 1, previous=begun())
    assert status.phase == "Succeeded"


def test_before_the_start_a_lost_node_is_made_anew() -> None:
    world = new_world()
    world.nodes[1].rounds_until_start = 10_000
    live_for(world, 20)
    world.nodes[2].disconnect(world.now)
    live_for(world, NOT_READY_SECONDS + LOST_SECONDS + 10)
    assert world.nodes[2].process.replacement == 1
    assert not world.nodes[2].is_disconnected
    world.nodes[1].rounds_until_start = 0
    live_for(world, 10)
    assert world.status.phase == "Running"


def test_a_job_that_was_to_fail_before_its_start_does() -> None:
    world = World(job(2, 2, startup=60), [SimulatedNode(number, 2) for number in range(2)])
    world.nodes[1].rounds_until_start = 3
    world.run_round()
    world.nodes[0].disconnect(world.now)
    seen = set()
    for _ in range(250):
        world.now += 0.9
        world.run_round()
        seen.add(world.status.phase)
    assert seen == {"Pending", "Starting", "Stopping", "Failed"}
    assert [entry.process.replacement for entry in world.nodes] == [0, 0]


def new_world(deadline: int | None = None) -> World:
    return World(job(3, 2, startup=86400, deadline=deadline), [SimulatedNode(number, 2) for number in range(3)])


def live_for(world: World, seconds: float) -> None:
    until = world.now + seconds
    while world.now < until:
        world.now += 0.9
        world.run_round()


@pytest.mark.parametrize("asked", ["suspend", "deadline", "failure", "nothing"])
def test_a_lost_machine_does_not_keep_the_job_from_suspending_or_ending(asked: str) -> None:
    world = new_world(deadline=100 if asked == "deadline" else None)
    live_for(world, 20)
    world.nodes[1].disconnect(world.now)
    if asked == "suspend":
        suspended = world.job.spec.model_copy(update={"suspend": True})
        world.job = world.job.model_copy(update={"spec": suspended})
    if asked == "failure":
        world.nodes[0].ranks[0].end(world.now + 5, 7, None, "ValueError: bad label")
    live_for(world, 150)
    phase, reason = {
        "suspend": ("Suspended", "Suspended"),
        "deadline": ("Failed", "DeadlineExceeded"),
        "failure": ("Failed", "RankFailed"),
        "nothing": ("Failed", "NodeLost"),
    }[asked]
    assert world.status.phase == phase
    assert reason in {entry.reason for entry in world.status.conditions if entry.status == "True"}
    assert world.nodes[1].process.is_terminating
    if asked == "suspend":
        resumed = world.job.spec.model_copy(update={"suspend": False})
        world.job = world.job.model_copy(update={"spec": resumed})
        live_for(world, 10)
        assert world.status.phase == "Running"
        assert [entry.process.replacement for entry in world.nodes] == [1, 1, 1]


def test_a_machine_that_comes_back_too_late_changes_nothing() -> None:
    world = new_world()
    live_for(world, 20)
    world.nodes[0].is_frozen = True  # so that the job needs a while to end
    world.nodes[1].disconnect(world.now)
    while world.status.phase != "Stopping":
        live_for(world, 1)
    message = world.status.message.split(";")[0]
    world.nodes[1].reconnect(world.now)
    live_for(world, 60)
    assert world.status.phase == "Failed"
    assert world.status.message.split(";")[0] == message


def test_the_pod_of_a_lost_machine_is_deleted_once() -> None:
    world = new_world()
    live_for(world, 20)
    world.nodes[1].disconnect(world.now)
    kills = 0
    for _ in range(300):
        world.now += 0.9
        kills += sum(isinstance(action, KillNode) for action in world.run_round())
    assert kills == 1


def test_a_missing_pods_problem_is_not_one_of_a_rank_that_never_ran() -> None:
    gone = replace(
        node(1),
        process=replace(node(1).process, state=ProcessState.MISSING, problem=Problem("PodDeleted", "somebody did")),
    )
    status = status_after(facts(running_node(0, rank(0), rank(1)), gone), START + 9, previous=begun())
    assert status.ranks is not None
    assert "Pending" not in {entry.state for entry in status.ranks.by_state}


def test_a_gang_does_not_start_without_a_node_that_is_silent() -> None:
    silent = cut(ready_node(1), None, heard=-60)
    assert status_after(facts(ready_node(0), silent), START + 1).start_time is None

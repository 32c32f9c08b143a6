"""When muster replaces a lost pod whose ranks may still run."""

from dataclasses import replace

import pytest

from muster.api.spec.failure_policy import FailurePolicy
from muster.core.facts import JobFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS, find_loss_time
from muster.core.failure_timeouts import get_fence_seconds
from muster.core.fence import OLD_POD_MAY_RUN
from muster_worker.contract.schema import AgentPhase, AgentProblem
from unit.core.builders import HEARTBEAT_SECONDS, START, T0, agent, job, node, with_spec
from unit.core.simulated import NOT_READY_SECONDS, World
from unit.core.test_any_operator import apply_event, lose_machines, run_rounds
from unit.core.test_restarts import EVENT_ROUNDS, restart_records, start_world

POLICY = FailurePolicy(max_disruptions=3)


def lose_machines_and_continue(world: World, *numbers: int) -> None:
    lose_machines(world, *numbers)
    run_rounds(world, EVENT_ROUNDS)


@pytest.mark.parametrize(
    ("of_policy", "reported", "unreachable", "expected"),
    [
        (0.0, 0.0, 50.0, 110.0),
        (45.0, 45.0, 50.0, 110.0),  # Kubernetes marks the node as NotReady after the fence.
        (45.0, 45.0, 0.0, 60.0),
        (300.0, 300.0, 50.0, 315.0),
        (45.0, 300.0, 50.0, 315.0),  # The policy was changed after the pod's start.
        (300.0, 0.0, 50.0, 315.0),  # A forged report does not shorten the wait.
    ],
)
def test_a_node_is_lost_once_its_agent_has_stopped_its_ranks(
    of_policy: float, reported: float, unreachable: float, expected: float
) -> None:
    agent_facts = agent(1, AgentPhase.RUNNING, reported_at=0.0)
    agent_facts = replace(agent_facts, report=replace(agent_facts.report, fence_seconds=reported), last_report_at=START)
    silent_node = node(1, agent_facts)
    silent_node = replace(silent_node, process=replace(silent_node.process, unreachable_since=START + unreachable))
    facts = JobFacts(T0, (silent_node,), HEARTBEAT_SECONDS, fence_seconds=of_policy)
    assert find_loss_time(silent_node, facts) == START + expected


def test_a_job_with_one_node_or_without_a_policy_has_no_fence() -> None:
    def fence_with_policy(nodes: int) -> float:
        plain = job(nodes)
        return get_fence_seconds(with_spec(plain, failure_policy=POLICY))

    assert (fence_with_policy(1), fence_with_policy(2), get_fence_seconds(job(2))) == (0.0, 45.0, 0.0)


def test_a_lost_node_is_replaced_if_another_one_still_reports() -> None:
    world = start_world(POLICY)
    lose_machines_and_continue(world, 1)
    assert [entry.process.replacement for entry in world.nodes] == [0, 1]
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert restart_records(world.status) == [(1, "NodeLost", "Disruption")]


@pytest.mark.parametrize("nodes", [1, 2])
def test_no_node_is_replaced_if_all_are_lost(nodes: int) -> None:
    world = start_world(POLICY, nodes)
    lose_machines_and_continue(world, *range(nodes))
    assert [entry.process.replacement for entry in world.nodes] == [0] * nodes
    assert (world.status.phase, world.status.attempt) == ("Restarting", 2)
    (stalled,) = [entry for entry in world.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)


@pytest.mark.parametrize("nodes", [1, 2])
def test_lost_nodes_are_replaced_after_one_of_them_has_exited(nodes: int) -> None:
    world = start_world(POLICY, nodes)
    lose_machines_and_continue(world, *range(nodes))
    world.nodes[0].reconnect(world.now)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert [entry.process.replacement for entry in world.nodes] == [1] * nodes


def test_a_new_operator_waits_for_the_old_pods_too() -> None:
    world = start_world(POLICY, 1)
    lose_machines_and_continue(world, 0)
    world.restart_operator()
    world.now += 2 * LOST_SECONDS
    run_rounds(world, EVENT_ROUNDS)
    assert world.nodes[0].process.state is not ProcessState.WAITING
    assert world.nodes[0].started_attempts == [1]
    assert world.status.phase == "Restarting"


@pytest.mark.parametrize("policy", [None, POLICY])
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_suspension_does_not_end_the_wait_for_lost_nodes(nodes: int, policy: FailurePolicy | None) -> None:
    world = start_world(policy, nodes)
    for entry in world.nodes:
        entry.disconnect(world.now)
    apply_event(world, "suspend", 0)
    for seconds in (0.0, NOT_READY_SECONDS, 2 * LOST_SECONDS):
        world.now += seconds
        run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Suspended"
    apply_event(world, "resume", 0)
    run_rounds(world, EVENT_ROUNDS)
    assert [entry.started_attempts for entry in world.nodes] == [[1]] * nodes
    (stalled,) = [entry for entry in world.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)

    world.nodes[0].reconnect(world.now)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)


def test_a_fenced_node_counts_as_a_disruption() -> None:
    world = start_world(FailurePolicy(max_restarts=0))
    node = world.nodes[1]
    for rank in node.ranks:
        rank.end(world.now, None, 15, stopped=True)
    node.problem = AgentProblem("Fenced", "this node has reached nothing for 45 s")
    node.exit(world.now, 143, None)
    run_rounds(world, EVENT_ROUNDS)
    assert restart_records(world.status) == [(1, "Fenced", "Disruption")]
    assert [entry.process.replacement for entry in world.nodes] == [0, 1]

"""When a lost pod is replaced, although its ranks may still run."""

from dataclasses import replace

import pytest

from muster.api.spec.failure_policy import FailurePolicy
from muster.core.facts import JobFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS, lost_at
from muster.core.fence import OLD_POD_MAY_RUN, fence_seconds
from muster_worker.contract.schema import AgentPhase, AgentProblem
from unit.core.builders import HEARTBEAT_SECONDS, START, T0, agent, job, node
from unit.core.simulated import NOT_READY_SECONDS, World
from unit.core.test_any_operator import happen, live, lose_machines
from unit.core.test_restarts import EVENT_TURNS, records, started

POLICY = FailurePolicy(max_disruptions=3)


def lose_machines_and_continue(current: World, *numbers: int) -> None:
    lose_machines(current, *numbers)
    live(current, EVENT_TURNS)


@pytest.mark.parametrize(
    ("own", "reported", "unreachable", "expected"),
    [
        (0.0, 0.0, 50.0, 110.0),
        (45.0, 45.0, 50.0, 110.0),  # the cluster's notice comes later than the fence
        (45.0, 45.0, 0.0, 60.0),
        (300.0, 300.0, 50.0, 315.0),
        (45.0, 300.0, 50.0, 315.0),  # the policy was changed after the pod's start
        (300.0, 0.0, 50.0, 315.0),  # a forged report shortens nothing
    ],
)
def test_a_node_is_lost_once_its_agent_has_stopped_its_ranks(
    own: float, reported: float, unreachable: float, expected: float
) -> None:
    known = agent(1, AgentPhase.RUNNING, heard=0.0)
    known = replace(known, report=replace(known.report, fence_seconds=reported), last_report_at=START)
    silent = node(1, known)
    silent = replace(silent, process=replace(silent.process, unreachable_since=START + unreachable))
    facts = JobFacts(T0, (silent,), HEARTBEAT_SECONDS, fence_seconds=own)
    assert lost_at(silent, facts) == START + expected


def test_a_job_with_one_node_or_without_a_policy_has_no_fence() -> None:
    def with_policy(nodes: int) -> float:
        plain = job(nodes)
        return fence_seconds(
            plain.model_copy(update={"spec": plain.spec.model_copy(update={"failure_policy": POLICY})})
        )

    assert (with_policy(1), with_policy(2), fence_seconds(job(2))) == (0.0, 45.0, 0.0)


def test_one_lost_node_of_two_is_replaced() -> None:
    current = started(POLICY)
    lose_machines_and_continue(current, 1)
    assert [entry.process.replacement for entry in current.nodes] == [0, 1]
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert records(current.status) == [(1, "NodeLost", "Disruption")]


@pytest.mark.parametrize("nodes", [1, 2])
def test_if_all_nodes_are_lost_nothing_is_replaced(nodes: int) -> None:
    current = started(POLICY, nodes)
    lose_machines_and_continue(current, *range(nodes))
    assert [entry.process.replacement for entry in current.nodes] == [0] * nodes
    assert (current.status.phase, current.status.attempt) == ("Restarting", 2)
    (stalled,) = [entry for entry in current.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_that_were_all_lost_are_replaced_when_one_has_ended(nodes: int) -> None:
    current = started(POLICY, nodes)
    lose_machines_and_continue(current, *range(nodes))
    current.nodes[0].heal(current.now)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)
    assert [entry.process.replacement for entry in current.nodes] == [1] * nodes


def test_another_operator_waits_for_the_old_pods_too() -> None:
    current = started(POLICY, 1)
    lose_machines_and_continue(current, 0)
    current.restart_operator()
    current.now += 2 * LOST_SECONDS
    live(current, EVENT_TURNS)
    assert current.nodes[0].process.state is not ProcessState.WAITING
    assert current.nodes[0].begun == [1]
    assert current.status.phase == "Restarting"


@pytest.mark.parametrize("policy", [None, POLICY])
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_suspension_does_not_end_the_wait_for_lost_nodes(nodes: int, policy: FailurePolicy | None) -> None:
    current = started(policy, nodes)
    for entry in current.nodes:
        entry.cut(current.now)
    happen(current, "suspend", 0)
    for seconds in (0.0, NOT_READY_SECONDS, 2 * LOST_SECONDS):
        current.now += seconds
        live(current, EVENT_TURNS)
    assert current.status.phase == "Suspended"
    happen(current, "resume", 0)
    live(current, EVENT_TURNS)
    assert [entry.begun for entry in current.nodes] == [[1]] * nodes
    (stalled,) = [entry for entry in current.status.conditions if entry.type == "Stalled"]
    assert (stalled.status, stalled.reason) == ("True", OLD_POD_MAY_RUN)

    current.nodes[0].heal(current.now)
    live(current, EVENT_TURNS)
    assert (current.status.phase, current.status.attempt) == ("Running", 2)


def test_a_fenced_node_is_a_disruption() -> None:
    current = started(FailurePolicy(max_restarts=0))
    fenced = current.nodes[1]
    for rank in fenced.ranks:
        rank.end(current.now, None, 15, stopped=True)
    fenced.problem = AgentProblem("Fenced", "this node has reached nothing for 45 s")
    fenced.leave(current.now, 143, None)
    live(current, EVENT_TURNS)
    assert records(current.status) == [(1, "Fenced", "Disruption")]
    assert [entry.process.replacement for entry in current.nodes] == [0, 1]

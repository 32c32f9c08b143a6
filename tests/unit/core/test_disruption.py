"""A pod whose end the cluster announces: its ranks stop gracefully, and continue in another pod."""

from dataclasses import replace

import pytest

from muster.api.spec.failure_policy import FailurePolicy
from muster.core.actions import KillNode, SendCommand
from muster.core.facts import ProcessState
from muster.core.problem import Problem
from unit.core.simulated import World
from unit.core.test_any_operator import run_rounds
from unit.core.test_restarts import EVENT_ROUNDS, new_world_with_policy, restart_records, start_world

NOTICE = Problem("NodeShutdown", "node-b has the taint karpenter.sh/disrupted, which announces its end")
POLICY = FailurePolicy(max_disruptions=1)


def announce(world: World, number: int = 1) -> None:
    node = world.nodes[number]
    node.process = replace(node.process, problem=NOTICE, disruption_announced_at=world.now)


def test_the_ranks_stop_gracefully_and_continue_in_another_pod() -> None:
    world = start_world(POLICY)
    announce(world)
    stops = [action for action in world.run_round() if isinstance(action, SendCommand)]
    assert {(stop.command.kind, stop.command.is_graceful) for stop in stops} == {("Stop", True)}
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert [node.process.replacement for node in world.nodes] == [0, 1]
    assert restart_records(world.status) == [(1, "NodeShutdown", "Disruption")]
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].replaced_pods == 1
    assert world.status.restarts.history[0].message.startswith(f"digits-1: {NOTICE.message}")


def test_without_a_policy_the_job_fails_gracefully() -> None:
    world = start_world(None)
    announce(world)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.phase == "Failed"
    assert NOTICE.message in world.status.message


@pytest.mark.parametrize("policy", [None, POLICY])
def test_a_pod_that_will_end_is_replaced_before_the_first_start(policy: FailurePolicy | None) -> None:
    world = new_world_with_policy(policy)
    world.nodes[0].rounds_until_start = 2
    world.run_round()
    announce(world)
    kills = [action for action in world.run_round() if isinstance(action, KillNode)]
    assert [kill.node for kill in kills] == [1]
    # muster deleted the pod, so the backend reports no problem.
    node = world.nodes[1]
    assert node.process.state is ProcessState.EXITED
    node.process = replace(node.process, state=ProcessState.MISSING, problem=None, disruption_announced_at=None)
    run_rounds(world, EVENT_ROUNDS)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)
    assert [node.process.replacement for node in world.nodes] == [0, 1]
    assert restart_records(world.status) == []

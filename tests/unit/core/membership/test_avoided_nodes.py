"""Kubernetes nodes that a job avoids, because it failed on them repeatedly."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy
from muster.api.status.restarts import MAX_AVOIDED_NODES, RestartRecord
from muster.core.membership.avoided_nodes import find_avoided_nodes
from muster.core.problem import Problem
from unit.core.simulated import SimulatedNode
from unit.core.test_any_operator import run_rounds
from unit.core.test_restarts import EVENT_ROUNDS, fail_rank, start_world

INTENDED_REASONS = ("PodDeleted", "Preempted", "Evicted", "NodeStopped", "NodeShutdown")


def restart_record(node_name: str | None, reason: str = "NodeLost") -> RestartRecord:
    return RestartRecord(
        attempt=1, reason=reason, message="", node_name=node_name, counts_as="Failure", at="2026-11-23T00:00:00Z"
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], []),
        ([restart_record("a")], []),
        ([restart_record("a"), restart_record("b")], []),
        ([restart_record("a"), restart_record("b"), restart_record("a", "RankFailed")], [("a", 2, "RankFailed")]),
        ([restart_record(name) for name in "abbaa"], [("b", 2, "NodeLost"), ("a", 3, "NodeLost")]),
        ([restart_record(None), restart_record(None), restart_record(""), restart_record("")], []),
        ([restart_record("a", reason) for reason in INTENDED_REASONS], []),
        ([restart_record("a"), restart_record("a", "Preempted")], []),
    ],
)
def test_a_node_with_two_failures_is_avoided(
    history: Sequence[RestartRecord], expected: list[tuple[str, int, str]]
) -> None:
    avoided = find_avoided_nodes(history)
    assert [(node.node_name, node.failures, node.reason) for node in avoided] == expected


@given(
    st.lists(
        st.builds(
            restart_record, st.integers(0, 12).map("node-{}".format), st.sampled_from(("NodeLost", *INTENDED_REASONS))
        )
    )
)
def test_the_list_is_bounded_and_names_only_nodes_that_failed(history: list[RestartRecord]) -> None:
    history = history[-32:]
    avoided = find_avoided_nodes(history)
    assert len(avoided) <= MAX_AVOIDED_NODES
    assert len({node.node_name for node in avoided}) == len(avoided)
    for node in avoided:
        assert node.failures == sum(
            entry.node_name == node.node_name and entry.reason not in INTENDED_REASONS for entry in history
        )
        assert node.failures >= 2


def place_on(node: SimulatedNode, machine: str) -> None:
    node.process = replace(node.process, kube_node=machine)


def test_the_replacement_after_the_second_failure_avoids_the_node() -> None:
    world = start_world(FailurePolicy(max_restarts=3))
    place_on(world.nodes[1], "bad")
    fail_rank(world)
    run_rounds(world, EVENT_ROUNDS)
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].node_name == "bad"
    assert not world.status.restarts.avoided_nodes

    world.now += 60
    world.nodes[1].exit(world.now, None, 9)
    place_on(world.nodes[1], "bad")
    world.nodes[1].process = replace(world.nodes[1].process, problem=Problem("NodeLost", "bad is lost"))
    run_rounds(world, EVENT_ROUNDS)

    assert (world.status.phase, world.status.attempt) == ("Running", 3)
    (avoided,) = world.status.restarts.avoided_nodes
    assert (avoided.node_name, avoided.failures, avoided.reason) == ("bad", 2, "NodeLost")
    assert world.nodes[0].avoided_nodes == ()
    assert world.nodes[1].avoided_nodes == ("bad",)

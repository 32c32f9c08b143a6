"""The node rank of a node in an attempt, from the Start command."""

from dataclasses import replace

import pytest

from muster_worker.agent.peers import find_node_rank, set_peers
from muster_worker.agent.state import NodeState
from muster_worker.contract.schema import Peer
from muster_worker.sagemaker.container import build_resource_config, build_sagemaker_variables
from support.node_builders import make_node_context, make_plan

PEERS = tuple(Peer(number, f"10.0.0.{number}", 29400) for number in (0, 4, 2))


@pytest.mark.parametrize(
    ("number", "peers", "expected"),
    [
        (0, PEERS, 0),
        (4, PEERS, 1),
        (2, PEERS, 2),
        (1, PEERS, None),
        (0, (), None),
        (4, (*PEERS, replace(PEERS[1])), None),
    ],
    ids=str,
)
def test_the_position_in_the_start_command_is_the_node_rank(
    number: int, peers: tuple[Peer, ...], expected: int | None
) -> None:
    assert find_node_rank(number, peers) == expected


def test_launchers_know_node_ranks_only() -> None:
    before = make_node_context(make_plan(nodes=5), 4)
    state, context = set_peers(NodeState("uid", 4, 0, address="10.0.0.4"), before, PEERS, 1)
    assert (context.node, context.plan.nodes, context.plan.world_size) == (1, 3, 3 * before.plan.procs_per_node)
    assert [(peer.node, peer.address) for peer in context.peers] == [(0, "10.0.0.0"), (1, "10.0.0.4"), (2, "10.0.0.2")]
    assert state.node == 4


def test_a_script_gets_the_host_names_of_the_members() -> None:
    before = make_node_context(make_plan(nodes=5), 4)
    _, context = set_peers(NodeState("uid", 4, 0, address="10.0.0.4"), before, PEERS, 1)
    variables = build_sagemaker_variables(context.plan, context.node, context.host, "/opt/ml")
    assert variables["SM_HOSTS"] == '["algo-1","algo-5","algo-3"]'
    assert variables["SM_CURRENT_HOST"] == "algo-5"
    assert build_resource_config(context.plan, context.node, context.host)["hosts"] == ["algo-1", "algo-5", "algo-3"]


def test_members_in_order_change_nothing_for_a_script() -> None:
    before = make_node_context(make_plan(nodes=2), 1)
    _, context = set_peers(NodeState("uid", 1, 0, address="10.0.0.2"), before, before.peers, 1)
    assert (context.plan, context.node, context.host) == (before.plan, before.node, before.host)

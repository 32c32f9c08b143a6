"""Sets the interface, the peers and the node rank of a node. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Tuple

from muster_worker.agent.state import NodeState
from muster_worker.contract.schema import Peer
from muster_worker.launchers.environment import NodeContext
from muster_worker.network.interface_choice import InterfaceChoice, find_choice_by_address


def set_interface(state: NodeState, choice: InterfaceChoice) -> NodeState:
    """Return the state of a node that uses the chosen interface."""
    return replace(
        state,
        address=choice.address,
        interface=choice.name,
        interface_why=choice.reason,
        speed_mbps=choice.speed_mbps,
        links=choice.links,
    )


def find_node_rank(node: int, peers: Tuple[Peer, ...]) -> Optional[int]:
    """Return the position of the node among the members; None if it is no member, or if a member occurs twice."""
    numbers = [peer.node for peer in peers]
    return numbers.index(node) if node in numbers and len(set(numbers)) == len(numbers) else None


def set_peers(
    state: NodeState, context: NodeContext, peers: Tuple[Peer, ...], node_rank: int
) -> Tuple[NodeState, NodeContext]:
    """Set the members of the attempt, by node rank, and the interface that has the node's address in `peers`."""
    address = peers[node_rank].address
    # Launchers and ranks know node ranks only.
    members = tuple(peer if peer.node == rank else replace(peer, node=rank) for rank, peer in enumerate(peers))
    plan = replace(context.plan, nodes=len(peers))
    numbers = tuple(peer.node for peer in peers)
    host = replace(context.host, members=() if numbers == tuple(range(len(peers))) else numbers)
    context = replace(context, plan=plan, node=node_rank, peers=members, host=host)
    choice = None if address == state.address else find_choice_by_address(state.links, address)
    if choice is None:
        return state, context
    network = replace(context.network, interface=choice.name, address=choice.address)
    host = replace(host, interface=choice.name)
    return set_interface(state, choice), replace(context, network=network, host=host)

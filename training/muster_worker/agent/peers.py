"""Sets the interface and the peers of a node. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

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


def set_peers(state: NodeState, context: NodeContext, peers: Tuple[Peer, ...]) -> Tuple[NodeState, NodeContext]:
    """Set the peers, and the interface that has the node's address in `peers`."""
    address = peers[context.node].address
    choice = None if address == state.address else find_choice_by_address(state.links, address)
    if choice is None:
        return state, replace(context, peers=peers)
    network = replace(context.network, interface=choice.name, address=choice.address)
    host = replace(context.host, interface=choice.name)
    return set_interface(state, choice), replace(context, peers=peers, network=network, host=host)

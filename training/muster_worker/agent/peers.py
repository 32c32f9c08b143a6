"""The interface on which the nodes of a job connect, once a node has the addresses of all. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

from muster_worker.agent.state import NodeState
from muster_worker.contract.schema import Peer
from muster_worker.launchers.environment import Place
from muster_worker.network.interface_choice import Choice, agreed_choice


def set_interface(state: NodeState, choice: Choice) -> NodeState:
    """The state of a node that uses this interface."""
    return replace(
        state,
        address=choice.address,
        interface=choice.name,
        interface_why=choice.why,
        speed_mbps=choice.speed_mbps,
        links=choice.links,
    )


def set_peers(state: NodeState, place: Place, peers: Tuple[Peer, ...]) -> Tuple[NodeState, Place]:
    """The node with its peers, on its own interface or on the one that all nodes have in common."""
    address = peers[place.node].address
    choice = None if address == state.address else agreed_choice(state.links, address)
    if choice is None:
        return state, replace(place, peers=peers)
    network = replace(place.network, interface=choice.name, address=choice.address)
    host = replace(place.host, interface=choice.name)
    return set_interface(state, choice), replace(place, peers=peers, network=network, host=host)

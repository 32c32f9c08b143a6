"""Where the nodes of a job meet: what becomes of a node's choice when it is told the addresses of all. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

from muster_worker.agent.state import NodeState
from muster_worker.contract.schema import Peer
from muster_worker.launchers.environment import Place
from muster_worker.network.interface_choice import Choice, agreed


def with_choice(state: NodeState, choice: Choice) -> NodeState:
    """The state of a node that is met at this choice."""
    return replace(
        state,
        address=choice.address,
        interface=choice.name,
        interface_why=choice.why,
        speed_mbps=choice.speed_mbps,
        links=choice.links,
    )


def meet(state: NodeState, place: Place, peers: Tuple[Peer, ...]) -> Tuple[NodeState, Place]:
    """The node among its peers: on the interface that it chose, or on another one that all of them have."""
    value = peers[place.node].address
    choice = None if value == state.address else agreed(state.links, value)
    if choice is None:
        return state, replace(place, peers=peers)
    network = replace(place.network, interface=choice.name, address=choice.address)
    host = replace(place.host, interface=choice.name)
    return with_choice(state, choice), replace(place, peers=peers, network=network, host=host)

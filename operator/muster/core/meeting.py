"""Where the nodes of a job meet: the address at which each is known to the others, and whether they fit together.

Each agent chooses an interface by what its own machine tells; which networks all nodes are on is known here only.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface

from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster_worker.contract.schema import Link, Peer, Report

_MAX_NAME_CHARS = 64

_Address = IPv4Interface | IPv6Interface
_Network = IPv4Network | IPv6Network


def meet(nodes: Sequence[NodeFacts]) -> tuple[Peer, ...]:
    """Every node's peer entry, in order; none at all while one of them has not said where it can be reached.

    The agents' own choices stand unless another network that all nodes are on is better. Agents that were told before
    still say what they said, so that asking again gives the same answer.
    """
    reports = [report for report in map(_reachable, nodes) if report is not None]
    if len(reports) < len(nodes):
        return ()
    links = _links(reports)
    return tuple(
        Peer(node.node, link.address.partition("/")[0], report.port or 0, link.interface or None, report.check_port)
        for node, report, link in zip(nodes, reports, links, strict=True)
    )


def mismatch(nodes: Sequence[NodeFacts]) -> str | None:
    """Why the nodes' addresses can't lead to each other, as a sentence; None when they may, or when one isn't known."""
    peers = meet(nodes)
    if len(nodes) == 1 or not peers:
        return None
    addresses = [_parsed(peer.address) for peer in peers]
    odd = _first(addresses, lambda address: address.version != addresses[0].version)
    if odd is not None:
        return _apart(nodes, peers, odd, "one is IPv4, the other IPv6")
    odd = _first(addresses, lambda address: address.is_loopback != addresses[0].is_loopback)
    # Processes of one machine meet on its loopback; pods have one each.
    if odd is None and addresses[0].is_loopback and any(node.process.name is not None for node in nodes):
        odd = 1
    if odd is not None:
        return _apart(nodes, peers, odd, "a loopback leads to no other node")
    odd = _same_elsewhere(nodes, peers)
    return None if odd is None else _apart(nodes, peers, odd, "each machine has this address for itself")


def _reachable(node: NodeFacts) -> Report | None:
    agent = node.current_agent
    if agent is None or agent.report.address is None or agent.report.port is None:
        return None
    return agent.report


def _links(reports: Sequence[Report]) -> Sequence[Link]:
    own = [_own(report) for report in reports]
    home = {_network(link) for link in own}
    others = [links for links in _shared(reports) if {_network(links[0])} != home]
    if len(reports) == 1 or not others:
        return own
    best = min(others, key=lambda links: (_demerit(links), str(_network(links[0]))))
    # Some can't reach the others over what they chose.
    if len({network.version for network in home}) > 1:
        return best
    # Over a network of its own the job is in nobody's way, and no router is in its. Unknown speeds can't be compared.
    is_better_apart = _speed(own) > 0 and (len(home) > 1 or all(link.to_operator for link in own))
    if is_better_apart and _demerit(best) == _demerit(own):
        return best
    return best if _demerit(best) < _demerit(own) else own


def _own(report: Report) -> Link:
    """The agent's own choice; an agent that names no links has none but its address."""
    return report.links[0] if report.links else Link(report.interface or "", report.address or "", report.speed_mbps)


def _shared(reports: Sequence[Report]) -> list[list[Link]]:
    """For each network that all nodes are on, their links to it."""
    by_network = [{_network(link): link for link in reversed(report.links)} for report in reports]
    common = set(by_network[0]).intersection(*by_network[1:])
    result = [[networks[network] for networks in by_network] for network in common]
    # An address that two machines have is each one's own: a bridge for its containers.
    return [links for links in result if len({link.address for link in links}) == len(links)]


def _demerit(links: Sequence[Link]) -> tuple[bool, int]:
    """By the worst of them: without RDMA, and slow."""
    return (not all(link.rdma for link in links), -_speed(links))


def _speed(links: Sequence[Link]) -> int:
    return min(link.speed_mbps for link in links)


def _network(link: Link) -> _Network:
    return _parsed(link.address).network


@lru_cache(1 << 15)
def _parsed(address: str) -> _Address:
    return ip_interface(address)


def _first(addresses: Sequence[_Address], is_odd: Callable[[_Address], bool]) -> int | None:
    return next((index for index, address in enumerate(addresses) if is_odd(address)), None)


def _same_elsewhere(nodes: Sequence[NodeFacts], peers: Sequence[Peer]) -> int | None:
    """The first node that has another one's address on another machine: pods of one machine may share its network."""
    visited: dict[str, str | None] = {}
    for index, (node, peer) in enumerate(zip(nodes, peers, strict=True)):
        machine = node.process.machine
        if machine is not None and visited.setdefault(peer.address, machine) != machine:
            return index
    return None


def _apart(nodes: Sequence[NodeFacts], peers: Sequence[Peer], odd: int, why: str) -> str:
    others = [index for index, peer in enumerate(peers) if index != odd and peer.address == peers[odd].address]
    first = others[0] if others else 0
    met = " and ".join(f"{nodes[index].name} is met at {_met_at(peers[index])}" for index in (first, odd))
    return f"The nodes can't reach each other: {met}; {why}. Set spec.network.interface to a network that all have"


def _met_at(peer: Peer) -> str:
    name = clean(peer.interface or "", limit=_MAX_NAME_CHARS)
    return f"{peer.address} ({name})" if name else peer.address

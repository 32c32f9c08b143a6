"""Choose the address at which each node's peers reach it, and check that the addresses fit together.

An agent only sees the networks of its own machine. The operator sees which networks all nodes share.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface

from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster_worker.contract.network import Link
from muster_worker.contract.schema import Peer, Report

_MAX_NAME_CHARS = 64

_Address = IPv4Interface | IPv6Interface
_Network = IPv4Network | IPv6Network


def select_peers(nodes: Sequence[NodeFacts]) -> tuple[Peer, ...]:
    """Return each node's address for its peers, in order; an empty tuple until all nodes have reported theirs.

    Each agent's own choice is used unless another network that all nodes share is better. Agents report the same
    choices after the start, so the result stays the same.
    """
    reports = [report for report in map(_get_report_with_address, nodes) if report is not None]
    if len(reports) < len(nodes):
        return ()
    links = _select_links(reports)
    return tuple(
        Peer(
            node.node,
            link.address.partition("/")[0],
            report.port or 0,
            link.interface or None,
            report.check_port,
            report.ping_port,
        )
        for node, report, link in zip(nodes, reports, links, strict=True)
    )


def find_network_mismatch(nodes: Sequence[NodeFacts]) -> str | None:
    """Describe why the nodes can't reach each other; None if they can, or if an address is missing."""
    peers = select_peers(nodes)
    if len(nodes) == 1 or not peers:
        return None
    addresses = [_parse_address(peer.address) for peer in peers]
    index = _find_first(addresses, lambda address: address.version != addresses[0].version)
    if index is not None:
        return _format_mismatch(nodes, peers, index, "one is IPv4, the other IPv6")
    index = _find_first(addresses, lambda address: address.is_loopback != addresses[0].is_loopback)
    # Processes on one machine share a loopback interface; each pod has its own.
    if index is None and addresses[0].is_loopback and any(node.process.name is not None for node in nodes):
        index = 1
    if index is not None:
        return _format_mismatch(nodes, peers, index, "a loopback leads to no other node")
    index = _find_duplicate_address(nodes, peers)
    return None if index is None else _format_mismatch(nodes, peers, index, "each machine has this address for itself")


def _get_report_with_address(node: NodeFacts) -> Report | None:
    agent = node.current_agent
    if agent is None or agent.report.address is None or agent.report.port is None:
        return None
    return agent.report


def _select_links(reports: Sequence[Report]) -> Sequence[Link]:
    chosen = [_get_chosen_link(report) for report in reports]
    chosen_networks = {_parse_network(link) for link in chosen}
    alternatives = [links for links in _find_shared_networks(reports) if {_parse_network(links[0])} != chosen_networks]
    if len(reports) == 1 or not alternatives:
        return chosen
    best = min(alternatives, key=lambda links: (_rank_links(links), str(_parse_network(links[0]))))
    # The agents chose both IPv4 and IPv6, which can't reach each other.
    if len({network.version for network in chosen_networks}) > 1:
        return best
    # Prefer a separate network: no shared traffic, no router between. Links without a speed can't be compared.
    prefers_separate = _get_lowest_speed(chosen) > 0 and (
        len(chosen_networks) > 1 or all(link.to_operator for link in chosen)
    )
    if prefers_separate and _rank_links(best) == _rank_links(chosen):
        return best
    return best if _rank_links(best) < _rank_links(chosen) else chosen


def _get_chosen_link(report: Report) -> Link:
    """The agent's own choice; an agent without a list of links reports only its address."""
    return report.links[0] if report.links else Link(report.interface or "", report.address or "", report.speed_mbps)


def _find_shared_networks(reports: Sequence[Report]) -> list[list[Link]]:
    """For each network that all nodes share, the nodes' links to it."""
    by_network = [{_parse_network(link): link for link in reversed(report.links)} for report in reports]
    common = set(by_network[0]).intersection(*by_network[1:])
    result = [[networks[network] for networks in by_network] for network in common]
    # Two machines with the same address have a local bridge each, not a shared network.
    return [links for links in result if len({link.address for link in links}) == len(links)]


def _rank_links(links: Sequence[Link]) -> tuple[bool, int]:
    """Sort key of the worst link: links without RDMA last, then slow links."""
    return (not all(link.rdma for link in links), -_get_lowest_speed(links))


def _get_lowest_speed(links: Sequence[Link]) -> int:
    return min(link.speed_mbps for link in links)


def _parse_network(link: Link) -> _Network:
    return _parse_address(link.address).network


@lru_cache(1 << 15)
def _parse_address(address: str) -> _Address:
    return ip_interface(address)


def _find_first(addresses: Sequence[_Address], is_mismatch: Callable[[_Address], bool]) -> int | None:
    return next((index for index, address in enumerate(addresses) if is_mismatch(address)), None)


def _find_duplicate_address(nodes: Sequence[NodeFacts], peers: Sequence[Peer]) -> int | None:
    """The first node with the same address as a node on another machine. Pods on one machine may share its network."""
    machines: dict[str, str | None] = {}
    for index, (node, peer) in enumerate(zip(nodes, peers, strict=True)):
        machine = node.process.machine
        if machine is not None and machines.setdefault(peer.address, machine) != machine:
            return index
    return None


def _format_mismatch(nodes: Sequence[NodeFacts], peers: Sequence[Peer], index: int, why: str) -> str:
    duplicates = (other for other, peer in enumerate(peers) if other != index and peer.address == peers[index].address)
    pair = (next(duplicates, 0), index)
    addresses = " and ".join(f"{nodes[number].name} is met at {_describe_address(peers[number])}" for number in pair)
    return (
        f"The nodes can't reach each other: {addresses}; {why}. Set spec.network.interface to a network that all have"
    )


def _describe_address(peer: Peer) -> str:
    name = clean(peer.interface or "", limit=_MAX_NAME_CHARS)
    return f"{peer.address} ({name})" if name else peer.address

"""Choose the address at which each node's peers reach it, and check that the nodes can reach each other.

An agent knows only the networks of its own node. The operator knows which networks all nodes share.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface

from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import sanitize_line
from muster_worker.contract.network import Link
from muster_worker.contract.schema import Peer, Report

_MAX_NAME_CHARS = 64

_Address = IPv4Interface | IPv6Interface
_Network = IPv4Network | IPv6Network


def select_peers(nodes: Sequence[NodeFacts]) -> tuple[Peer, ...]:
    """Return each node's address for its peers, in order; () until all nodes have reported their addresses.

    Use each agent's own choice unless another network that all nodes share is better. Agents report the same choices
    after the start, so the result stays the same.
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
    # Local processes share a loopback interface. Each pod has its own.
    if index is None and addresses[0].is_loopback and any(node.process.name is not None for node in nodes):
        index = 1
    if index is not None:
        return _format_mismatch(nodes, peers, index, "a loopback address reaches no other node")
    index = _find_duplicate_address(nodes, peers)
    return (
        None
        if index is None
        else _format_mismatch(nodes, peers, index, "each Kubernetes node has its own interface with this address")
    )


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
    # Prefer a separate network, which has less traffic and no router. Links without a speed can't be compared.
    prefers_separate = _get_lowest_speed(chosen) > 0 and (
        len(chosen_networks) > 1 or all(link.to_operator for link in chosen)
    )
    if prefers_separate and _rank_links(best) == _rank_links(chosen):
        return best
    return best if _rank_links(best) < _rank_links(chosen) else chosen


def _get_chosen_link(report: Report) -> Link:
    """Return the agent's own choice. An agent without a list of links reports only its address."""
    return report.links[0] if report.links else Link(report.interface or "", report.address or "", report.speed_mbps)


def _find_shared_networks(reports: Sequence[Report]) -> list[list[Link]]:
    """Return the nodes' links to each network that all nodes share."""
    by_network = [{_parse_network(link): link for link in reversed(report.links)} for report in reports]
    common = set(by_network[0]).intersection(*by_network[1:])
    result = [[networks[network] for networks in by_network] for network in common]
    # Two nodes with the same address each have a local bridge, not a shared network.
    return [links for links in result if len({link.address for link in links}) == len(links)]


def _rank_links(links: Sequence[Link]) -> tuple[bool, int]:
    """Return a sort key: networks with RDMA on all links come first, then fast ones."""
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
    """Return the first node that has the address of a node on another Kubernetes node.

    Pods on one Kubernetes node may share its network.
    """
    kube_nodes: dict[str, str] = {}
    for index, (node, peer) in enumerate(zip(nodes, peers, strict=True)):
        kube_node = node.process.kube_node
        if kube_node is not None and kube_nodes.setdefault(peer.address, kube_node) != kube_node:
            return index
    return None


def _format_mismatch(nodes: Sequence[NodeFacts], peers: Sequence[Peer], index: int, why: str) -> str:
    duplicates = (other for other, peer in enumerate(peers) if other != index and peer.address == peers[index].address)
    pair = (next(duplicates, 0), index)
    addresses = " and ".join(
        f"{nodes[number].name} has the address {_describe_address(peers[number])}" for number in pair
    )
    remedy = "Set spec.network.interface to a network that all nodes have"
    return f"The nodes can't reach each other: {addresses}; {why}. {remedy}"


def _describe_address(peer: Peer) -> str:
    name = sanitize_line(peer.interface or "", limit=_MAX_NAME_CHARS)
    return f"{peer.address} ({name})" if name else peer.address

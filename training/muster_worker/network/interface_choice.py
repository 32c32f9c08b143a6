"""Chooses the network interface of the ranks from `spec.network.interface` and the node's interfaces. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple, Union

from muster_worker.contract.schema import MAX_LINKS, Link

AUTO = "Auto"

_VIRTUAL_PREFIXES = (
    *("docker", "podman", "nerdctl", "lxc", "lxd", "virbr", "vmnet", "veth", "br-"),
    *("cni", "cali", "vxlan", "flannel", "cilium", "weave", "antrea", "ovn", "ovs", "kube", "nodelocaldns"),
    *("tunl", "tailscale", "wg", "dummy", "ifb"),
)
"""Interfaces of container tools, overlays and VPNs, which don't reach other nodes or are slow."""

_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


@dataclass(frozen=True)
class Interface:
    """A network interface of the kernel. `addresses` have a prefix length: 10.0.0.7/16."""

    name: str
    addresses: Tuple[str, ...] = ()
    up: bool = True
    loopback: bool = False
    rdma: bool = False  # it has an EFA or InfiniBand device
    speed_mbps: int = 0  # 0: unknown

    @property
    def address(self) -> Optional[str]:
        """The first address, IPv4 before IPv6, with its prefix length."""
        ordered = sorted(self.addresses, key=lambda text: ":" in text)
        return ordered[0] if ordered else None


@dataclass(frozen=True)
class Choice:
    """The chosen interface, one of its addresses, and the reason.

    `links` are this address and then the other permitted ones, best first.
    """

    name: str
    address: str
    why: str
    speed_mbps: int = 0  # 0: unknown
    links: Tuple[Link, ...] = ()


@dataclass(frozen=True)
class NoChoice:
    """No interface is suitable; `problem` is a message for the job's owner."""

    problem: str


@dataclass(frozen=True)
class _Candidate:
    interface: Interface
    address: str  # with prefix length


def choose(setting: str, interfaces: Sequence[Interface], routed: Optional[str]) -> Union[Choice, NoChoice]:
    """Choose an interface. `routed` is the name of the interface on the route to the operator, if known.

    `setting` is Auto; a list of names (`eth1`) and prefixes (`eth*`), of which the first usable one counts; prefixes to
    exclude (`^docker,lo`); or an address range (`10.0.0.0/16`).
    """
    usable = [interface for interface in interfaces if interface.up and interface.addresses]
    if setting.startswith("^"):
        prefixes = tuple(entry.rstrip("*") for entry in _entries(setting[1:]))
        usable = [interface for interface in usable if not interface.name.startswith(prefixes)]
    route = next((interface for interface in usable if interface.name == routed), None)
    if setting == AUTO or setting.startswith("^"):
        result = _auto(usable, route)
    elif _network(setting) is not None:
        result = _in_range(usable, setting, route)
    else:
        result = _by_name(usable, setting, route)
    return NoChoice(_problem(setting, interfaces)) if result is None else result


def agreed_choice(links: Sequence[Link], address: str) -> Optional[Choice]:
    """The choice when the operator selects `address` for all nodes of the job; None if no link has it."""
    link = next((link for link in links if _strip_prefix(link.address) == address), None)
    if link is None:
        return None
    network, own = ipaddress.ip_interface(link.address).network, links[0]
    why = _add_properties(f"all nodes of the job are on its network {network}", link)
    if own.to_operator and (own.rdma, own.speed_mbps) == (link.rdma, link.speed_mbps):
        why = f"{why}, like {own.interface} on the route to the operator"
    return Choice(link.interface, address, why, link.speed_mbps, tuple(links))


def _auto(usable: Sequence[Interface], route: Optional[Interface]) -> Optional[Choice]:
    # If the operator is on this machine, the peers are, too.
    if route is not None and route.loopback:
        return _chosen([_Candidate(route, _first(route))], route, "the operator is on this machine")
    physical = [item for item in usable if not item.name.startswith(_VIRTUAL_PREFIXES) and _reaches_other_nodes(item)]
    # Interfaces in the route's network reach the same peers, and one of them may be faster.
    same_network = [item for item in physical if route is not None and _share_network(route, item)]
    for candidates, why in (
        (same_network, "on the route to the operator"),
        (physical, "the best that is up"),
    ):
        if candidates:
            first = _best_first(candidates, route)
            others = [item for item in _best_first(physical, route) if item != first[0]]
            ordered = [_Candidate(item, _first(item)) for item in (first[0], *others)]
            return _chosen(ordered, route, _add_properties(why, first[0]))
    return None


def _in_range(usable: Sequence[Interface], setting: str, route: Optional[Interface]) -> Optional[Choice]:
    network = _network(setting)
    inside = [
        _Candidate(interface, text)
        for interface in _best_first(usable, route)
        for text in interface.addresses
        if network is not None and ipaddress.ip_address(_strip_prefix(text)) in network
    ]
    # Prefer other interfaces to loopback, which may also be in the range.
    ordered = sorted(inside, key=lambda candidate: candidate.interface.loopback)
    return _chosen(ordered, route, f"its address is in {setting}")


def _by_name(usable: Sequence[Interface], setting: str, route: Optional[Interface]) -> Optional[Choice]:
    for entry in _entries(setting):
        if entry.endswith("*"):
            matches = [item for item in usable if item.name.startswith(entry[:-1]) and not item.loopback]
            why = f"its name matches {entry}"
        else:
            matches = [item for item in usable if item.name == entry]
            why = "named by the job"
        if matches:
            return _chosen([_Candidate(item, _first(item)) for item in _best_first(matches, route)], route, why)
    return None


def _chosen(candidates: Sequence[_Candidate], route: Optional[Interface], why: str) -> Optional[Choice]:
    if not candidates:
        return None
    best = candidates[0]
    if best.address != _first(best.interface):
        first_address = _strip_prefix(_first(best.interface))
        why = f"{why}; {_affected_libraries(best)} takes the interface's first address, {first_address}"
    links = tuple(
        Link(
            candidate.interface.name,
            candidate.address,
            candidate.interface.speed_mbps,
            candidate.interface.rdma,
            candidate.interface is route,
        )
        for candidate in candidates[:MAX_LINKS]
    )
    return Choice(best.interface.name, _strip_prefix(best.address), why, best.interface.speed_mbps, links)


def _affected_libraries(candidate: _Candidate) -> str:
    """Libraries that choose an interface by name and always use its first address."""
    of_its_family = [text for text in candidate.interface.addresses if (":" in text) == (":" in candidate.address)]
    # NCCL_SOCKET_FAMILY selects the family
    return "gloo" if candidate.address == of_its_family[0] else "NCCL, as gloo,"


def _best_first(interfaces: Sequence[Interface], route: Optional[Interface]) -> Sequence[Interface]:
    return sorted(interfaces, key=lambda item: (not item.rdma, -item.speed_mbps, item is not route, item.name))


def _reaches_other_nodes(interface: Interface) -> bool:
    # 169.254.0.0/16 is local to each machine.
    return not interface.loopback and not ipaddress.ip_address(_strip_prefix(_first(interface))).is_link_local


def _share_network(first: Interface, second: Interface) -> bool:
    networks = {ipaddress.ip_interface(text).network for text in first.addresses}
    return any(ipaddress.ip_interface(text).network in networks for text in second.addresses)


def _network(text: str) -> Optional[_Network]:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _entries(text: str) -> Sequence[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _first(interface: Interface) -> str:
    return interface.address or ""


def _strip_prefix(address: str) -> str:
    return address.split("/", maxsplit=1)[0]


def _add_properties(why: str, card: Union[Interface, Link]) -> str:
    parts = [why]
    if card.rdma:
        parts.append("EFA or InfiniBand")
    if card.speed_mbps:
        parts.append(f"{card.speed_mbps} Mbit/s")
    return ", ".join(parts)


def _problem(setting: str, interfaces: Sequence[Interface]) -> str:
    present = [
        f"{item.name} ({', '.join(item.addresses) or 'no address'}, {'up' if item.up else 'down'})"
        for item in interfaces
    ]
    problem = (
        "no network interface leads to other nodes"
        if setting == AUTO
        else f"no usable network interface fits {setting}"
    )
    return f"spec.network.interface: {problem}; this node has {', '.join(present) or 'none'}"

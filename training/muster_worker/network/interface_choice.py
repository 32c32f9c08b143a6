"""Chooses the network interface of the ranks from `spec.network.interface` and the node's interfaces. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple, Union

from muster_worker.contract.network import MAX_LINKS, Link

AUTO = "Auto"

_VIRTUAL_PREFIXES = (
    *("docker", "podman", "nerdctl", "lxc", "lxd", "virbr", "vmnet", "veth", "br-"),
    *("cni", "cali", "vxlan", "flannel", "cilium", "weave", "antrea", "ovn", "ovs", "kube", "nodelocaldns"),
    *("tunl", "tailscale", "wg", "dummy", "ifb"),
)
"""Interfaces of container tools, overlays and VPNs. They don't reach other nodes, or are slow."""

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
class InterfaceChoice:
    """The chosen interface, one of its addresses, and the reason.

    `links` has this address first, and then the other permitted addresses, best first.
    """

    name: str
    address: str
    reason: str
    speed_mbps: int = 0  # 0: unknown
    links: Tuple[Link, ...] = ()


@dataclass(frozen=True)
class NoInterface:
    """No interface is suitable. `problem` is a message for the job's owner."""

    problem: str


@dataclass(frozen=True)
class _Candidate:
    interface: Interface
    address: str  # with prefix length


def choose_interface(
    setting: str, interfaces: Sequence[Interface], route_name: Optional[str]
) -> Union[InterfaceChoice, NoInterface]:
    """Choose an interface. `route_name` is the name of the interface on the route to the operator, if known.

    `setting` is Auto; a list of names (`eth1`) and prefixes (`eth*`), of which the first usable one counts; prefixes to
    exclude (`^docker,lo`); or an address range (`10.0.0.0/16`).
    """
    usable_interfaces = [interface for interface in interfaces if interface.up and interface.addresses]
    if setting.startswith("^"):
        prefixes = tuple(entry.rstrip("*") for entry in _split_list(setting[1:]))
        usable_interfaces = [interface for interface in usable_interfaces if not interface.name.startswith(prefixes)]
    route_interface = next((interface for interface in usable_interfaces if interface.name == route_name), None)
    if setting == AUTO or setting.startswith("^"):
        result = _choose_automatically(usable_interfaces, route_interface)
    elif _parse_network(setting) is not None:
        result = _choose_by_range(usable_interfaces, setting, route_interface)
    else:
        result = _choose_by_name(usable_interfaces, setting, route_interface)
    return NoInterface(_describe_problem(setting, interfaces)) if result is None else result


def find_choice_by_address(links: Sequence[Link], address: str) -> Optional[InterfaceChoice]:
    """Return the choice with `address`, which the operator has selected; None if no link has this address."""
    link = next((link for link in links if _strip_prefix(link.address) == address), None)
    if link is None:
        return None
    network, own_link = ipaddress.ip_interface(link.address).network, links[0]
    reason = _add_properties(f"all nodes of the job are on its network {network}", link)
    if own_link.to_operator and (own_link.rdma, own_link.speed_mbps) == (link.rdma, link.speed_mbps):
        reason = f"{reason}; {own_link.interface}, on the route to the operator, is equally fast"
    return InterfaceChoice(link.interface, address, reason, link.speed_mbps, tuple(links))


def _choose_automatically(
    usable_interfaces: Sequence[Interface], route_interface: Optional[Interface]
) -> Optional[InterfaceChoice]:
    # If the operator is on this machine, the peers are on it, too.
    if route_interface is not None and route_interface.loopback:
        return _build_choice(
            [_Candidate(route_interface, _get_first_address(route_interface))],
            route_interface,
            "the operator is on this machine",
        )
    physical = [
        item for item in usable_interfaces if not item.name.startswith(_VIRTUAL_PREFIXES) and _reaches_other_nodes(item)
    ]
    # Interfaces in the network of the route reach the same peers, and one of them may be faster.
    same_network = [
        item for item in physical if route_interface is not None and _are_in_same_network(route_interface, item)
    ]
    for candidates, reason in (
        (same_network, "on the route to the operator"),
        (physical, "the best that is up"),
    ):
        if candidates:
            first = _sort_best_first(candidates, route_interface)
            other_interfaces = [item for item in _sort_best_first(physical, route_interface) if item != first[0]]
            ordered = [_Candidate(item, _get_first_address(item)) for item in (first[0], *other_interfaces)]
            return _build_choice(ordered, route_interface, _add_properties(reason, first[0]))
    return None


def _choose_by_range(
    usable_interfaces: Sequence[Interface], setting: str, route_interface: Optional[Interface]
) -> Optional[InterfaceChoice]:
    network = _parse_network(setting)
    matching_candidates = [
        _Candidate(interface, text)
        for interface in _sort_best_first(usable_interfaces, route_interface)
        for text in interface.addresses
        if network is not None and ipaddress.ip_address(_strip_prefix(text)) in network
    ]
    # The loopback interface may also be in the range. Put it last.
    ordered = sorted(matching_candidates, key=lambda candidate: candidate.interface.loopback)
    return _build_choice(ordered, route_interface, f"its address is in {setting}")


def _choose_by_name(
    usable_interfaces: Sequence[Interface], setting: str, route_interface: Optional[Interface]
) -> Optional[InterfaceChoice]:
    for entry in _split_list(setting):
        if entry.endswith("*"):
            matches = [item for item in usable_interfaces if item.name.startswith(entry[:-1]) and not item.loopback]
            reason = f"its name matches {entry}"
        else:
            matches = [item for item in usable_interfaces if item.name == entry]
            reason = "named by the job"
        if matches:
            return _build_choice(
                [_Candidate(item, _get_first_address(item)) for item in _sort_best_first(matches, route_interface)],
                route_interface,
                reason,
            )
    return None


def _build_choice(
    candidates: Sequence[_Candidate], route_interface: Optional[Interface], reason: str
) -> Optional[InterfaceChoice]:
    if not candidates:
        return None
    best_candidate = candidates[0]
    if best_candidate.address != _get_first_address(best_candidate.interface):
        first_address = _strip_prefix(_get_first_address(best_candidate.interface))
        reason = (
            f"{reason}, but {_name_affected_libraries(best_candidate)} the interface's first address, {first_address}"
        )
    links = tuple(
        Link(
            candidate.interface.name,
            candidate.address,
            candidate.interface.speed_mbps,
            candidate.interface.rdma,
            candidate.interface is route_interface,
        )
        for candidate in candidates[:MAX_LINKS]
    )
    return InterfaceChoice(
        best_candidate.interface.name,
        _strip_prefix(best_candidate.address),
        reason,
        best_candidate.interface.speed_mbps,
        links,
    )


def _name_affected_libraries(candidate: _Candidate) -> str:
    """Return the libraries that use another address: they find an interface by name, and use its first address."""
    same_family = [text for text in candidate.interface.addresses if (":" in text) == (":" in candidate.address)]
    # NCCL_SOCKET_FAMILY selects the family
    return "gloo uses" if candidate.address == same_family[0] else "NCCL and gloo use"


def _sort_best_first(interfaces: Sequence[Interface], route_interface: Optional[Interface]) -> Sequence[Interface]:
    return sorted(
        interfaces, key=lambda item: (not item.rdma, -item.speed_mbps, item is not route_interface, item.name)
    )


def _reaches_other_nodes(interface: Interface) -> bool:
    # 169.254.0.0/16 is local to each machine.
    return (
        not interface.loopback and not ipaddress.ip_address(_strip_prefix(_get_first_address(interface))).is_link_local
    )


def _are_in_same_network(first: Interface, second: Interface) -> bool:
    networks = {ipaddress.ip_interface(text).network for text in first.addresses}
    return any(ipaddress.ip_interface(text).network in networks for text in second.addresses)


def _parse_network(text: str) -> Optional[_Network]:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _split_list(text: str) -> Sequence[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _get_first_address(interface: Interface) -> str:
    return interface.address or ""


def _strip_prefix(address: str) -> str:
    return address.split("/", maxsplit=1)[0]


def _add_properties(reason: str, interface: Union[Interface, Link]) -> str:
    properties = [reason]
    if interface.rdma:
        properties.append("EFA or InfiniBand")
    if interface.speed_mbps:
        properties.append(f"{interface.speed_mbps} Mbit/s")
    return ", ".join(properties)


def _describe_problem(setting: str, interfaces: Sequence[Interface]) -> str:
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

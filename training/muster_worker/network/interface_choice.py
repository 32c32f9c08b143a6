"""Which network interface the ranks use: `spec.network.interface` against what the node has. Pure."""

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
"""Bridges, pair ends and overlays that container tools and VPNs make: no other node is behind them, or a slow way."""

_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


@dataclass(frozen=True)
class Interface:
    """A network interface as the kernel describes it. `addresses` are with their prefix length: 10.0.0.7/16."""

    name: str
    addresses: Tuple[str, ...] = ()
    up: bool = True
    loopback: bool = False
    rdma: bool = False  # an EFA or InfiniBand device belongs to it
    speed_mbps: int = 0  # 0: the driver doesn't say

    @property
    def address(self) -> Optional[str]:
        """The first address, IPv4 before IPv6, with its prefix length."""
        ordered = sorted(self.addresses, key=lambda text: ":" in text)
        return ordered[0] if ordered else None


@dataclass(frozen=True)
class Choice:
    """The interface to use, one of its addresses, and why it is this one.

    `links` is where the node may be met: this address first, then what its owner left open, best first.
    """

    name: str
    address: str
    why: str
    speed_mbps: int = 0  # 0: the driver doesn't say
    links: Tuple[Link, ...] = ()


@dataclass(frozen=True)
class NoChoice:
    """No interface will do; `problem` is a sentence for the job's owner."""

    problem: str


@dataclass(frozen=True)
class _Candidate:
    interface: Interface
    address: str  # with its prefix length


def choose(wanted: str, interfaces: Sequence[Interface], routed: Optional[str]) -> Union[Choice, NoChoice]:
    """Pick an interface. `routed` is the name of the one that packets to the operator leave by, if known.

    `wanted` is Auto; names (`eth1`) and prefixes (`eth*`), of which the first that is usable counts; prefixes to leave
    out (`^docker,lo`); or an address range (`10.0.0.0/16`).
    """
    usable = [interface for interface in interfaces if interface.up and interface.addresses]
    if wanted.startswith("^"):
        prefixes = tuple(entry.rstrip("*") for entry in _entries(wanted[1:]))
        usable = [interface for interface in usable if not interface.name.startswith(prefixes)]
    way = next((interface for interface in usable if interface.name == routed), None)
    if wanted == AUTO or wanted.startswith("^"):
        result = _auto(usable, way)
    elif _network(wanted) is not None:
        result = _in_range(usable, wanted, way)
    else:
        result = _by_name(usable, wanted, way)
    return NoChoice(_problem(wanted, interfaces)) if result is None else result


def agreed(links: Sequence[Link], address: str) -> Optional[Choice]:
    """The choice when all nodes of the job are told to meet, this one at `address`; None when that is none of these."""
    link = next((link for link in links if _bare(link.address) == address), None)
    if link is None:
        return None
    network, own = ipaddress.ip_interface(link.address).network, links[0]
    why = _with_merits(f"all nodes of the job are on its network {network}", link)
    if own.to_operator and (own.rdma, own.speed_mbps) == (link.rdma, link.speed_mbps):
        why = f"{why}, as {own.interface} has, which leads to the operator"
    return Choice(link.interface, address, why, link.speed_mbps, tuple(links))


def _auto(usable: Sequence[Interface], way: Optional[Interface]) -> Optional[Choice]:
    # an operator on this machine means that the peers are on it as well
    if way is not None and way.loopback:
        return _chosen([_Candidate(way, _first(way))], way, "the operator is on this machine")
    real = [item for item in usable if not item.name.startswith(_VIRTUAL_PREFIXES) and _leads_out(item)]
    # what shares a network with the route reaches the same peers; a better card there is worth more than the route
    near = [item for item in real if way is not None and _share_network(way, item)]
    for candidates, why in ((near, "on the route to the operator"), (real, "the best that is up")):
        if candidates:
            first = _best_first(candidates, way)
            others = [item for item in _best_first(real, way) if item != first[0]]
            ordered = [_Candidate(item, _first(item)) for item in (first[0], *others)]
            return _chosen(ordered, way, _with_merits(why, first[0]))
    return None


def _in_range(usable: Sequence[Interface], wanted: str, way: Optional[Interface]) -> Optional[Choice]:
    network = _network(wanted)
    inside = [
        _Candidate(interface, text)
        for interface in _best_first(usable, way)
        for text in interface.addresses
        if network is not None and ipaddress.ip_address(_bare(text)) in network
    ]
    # a range may hold the loopback's network, which is meant only when nothing else is in it
    ordered = sorted(inside, key=lambda candidate: candidate.interface.loopback)
    return _chosen(ordered, way, f"its address is in {wanted}")


def _by_name(usable: Sequence[Interface], wanted: str, way: Optional[Interface]) -> Optional[Choice]:
    for entry in _entries(wanted):
        if entry.endswith("*"):
            fitting = [item for item in usable if item.name.startswith(entry[:-1]) and not item.loopback]
            why = f"its name begins as {entry} does"
        else:
            fitting = [item for item in usable if item.name == entry]
            why = "named by the job"
        if fitting:
            return _chosen([_Candidate(item, _first(item)) for item in _best_first(fitting, way)], way, why)
    return None


def _chosen(candidates: Sequence[_Candidate], way: Optional[Interface], why: str) -> Optional[Choice]:
    if not candidates:
        return None
    best = candidates[0]
    if best.address != _first(best.interface):
        why = f"{why}; {_followers(best)} takes the interface's first address, {_bare(_first(best.interface))}"
    links = tuple(
        Link(one.interface.name, one.address, one.interface.speed_mbps, one.interface.rdma, one.interface is way)
        for one in candidates[:MAX_LINKS]
    )
    return Choice(best.interface.name, _bare(best.address), why, best.interface.speed_mbps, links)


def _followers(candidate: _Candidate) -> str:
    """Who takes an interface by its name, and cannot be told which of its addresses."""
    of_its_family = [text for text in candidate.interface.addresses if (":" in text) == (":" in candidate.address)]
    # NCCL can be told the family
    return "gloo" if candidate.address == of_its_family[0] else "NCCL, as gloo,"


def _best_first(interfaces: Sequence[Interface], way: Optional[Interface]) -> Sequence[Interface]:
    return sorted(interfaces, key=lambda item: (not item.rdma, -item.speed_mbps, item is not way, item.name))


def _leads_out(interface: Interface) -> bool:
    # 169.254.0.0/16 means something else on every machine
    return not interface.loopback and not ipaddress.ip_address(_bare(_first(interface))).is_link_local


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


def _bare(address: str) -> str:
    return address.split("/", maxsplit=1)[0]


def _with_merits(why: str, card: Union[Interface, Link]) -> str:
    merits = [why]
    if card.rdma:
        merits.append("EFA or InfiniBand")
    if card.speed_mbps:
        merits.append(f"{card.speed_mbps} Mbit/s")
    return ", ".join(merits)


def _problem(wanted: str, interfaces: Sequence[Interface]) -> str:
    there = [
        f"{item.name} ({', '.join(item.addresses) or 'no address'}, {'up' if item.up else 'down'})"
        for item in interfaces
    ]
    what = (
        "no network interface leads to other nodes" if wanted == AUTO else f"no usable network interface fits {wanted}"
    )
    return f"spec.network.interface: {what}; this node has {', '.join(there) or 'none'}"

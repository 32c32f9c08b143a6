"""Which network interface the ranks use: `spec.network.interface` against what the node has. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple, Union

AUTO = "Auto"

_VIRTUAL_PREFIXES = (
    "docker",
    "veth",
    "br-",
    "virbr",
    "cni",
    "cali",
    "flannel",
    "lxc",
    "tunl",
    "dummy",
    "ifb",
    "podman",
)
"""Bridges and pair ends that containers and test tools make; no other node is reachable through them."""

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
        """The first address, IPv4 before IPv6, without its prefix length."""
        ordered = sorted(self.addresses, key=lambda text: ":" in text)
        return ordered[0].split("/")[0] if ordered else None


@dataclass(frozen=True)
class Choice:
    """The interface to use, one of its addresses, and why it is this one."""

    name: str
    address: str
    why: str


@dataclass(frozen=True)
class NoChoice:
    """No interface will do; `problem` is a sentence for the job's owner."""

    problem: str


def choose(wanted: str, interfaces: Sequence[Interface], routed: Optional[str]) -> Union[Choice, NoChoice]:
    """Pick an interface. `routed` is the name of the one that packets to the operator leave by, if known.

    `wanted` is Auto, names (`eth1,eth2`: the first that is usable), prefixes to leave out (`^docker,lo`) or an address
    range (`10.0.0.0/16`).
    """
    usable = [interface for interface in interfaces if interface.up and interface.address is not None]
    if wanted == AUTO:
        found = _auto(usable, routed)
    elif wanted.startswith("^"):
        prefixes = tuple(part.strip() for part in wanted[1:].split(",") if part.strip())
        found = _auto([interface for interface in usable if not interface.name.startswith(prefixes)], routed)
    elif _network(wanted) is not None:
        found = _in_range(usable, wanted)
    else:
        found = _by_name(usable, wanted)
    if found is None:
        return NoChoice(_problem(wanted, interfaces))
    return found


def _auto(usable: Sequence[Interface], routed: Optional[str]) -> Optional[Choice]:
    way = next((interface for interface in usable if interface.name == routed), None)
    # an operator on this machine means that the peers are on it as well
    if way is not None and way.loopback:
        return _choice(way, way.address, "the operator is on this machine")
    real = [item for item in usable if not item.loopback and not item.name.startswith(_VIRTUAL_PREFIXES)]
    # what shares a network with the route reaches the same peers; a better card there is worth more than the route
    near = [item for item in real if way is not None and _share_network(way, item)]
    for candidates, why in ((near, "on the route to the operator"), (real, "the best that is up")):
        if candidates:
            best = min(candidates, key=lambda item: (not item.rdma, -item.speed_mbps, item is not way, item.name))
            return _choice(best, best.address, f"{why}, {_merits(best)}" if _merits(best) else why)
    return None


def _in_range(usable: Sequence[Interface], wanted: str) -> Optional[Choice]:
    network = _network(wanted)
    for interface in usable:
        for text in interface.addresses:
            address = text.split("/")[0]
            if network is not None and ipaddress.ip_address(address) in network:
                return _choice(interface, address, f"its address is in {wanted}")
    return None


def _by_name(usable: Sequence[Interface], wanted: str) -> Optional[Choice]:
    by_name = {interface.name: interface for interface in usable}
    for name in (part.strip() for part in wanted.split(",")):
        if name in by_name:
            return _choice(by_name[name], by_name[name].address, "named by the job")
    return None


def _choice(interface: Interface, address: Optional[str], why: str) -> Optional[Choice]:
    return None if address is None else Choice(interface.name, address, why)


def _share_network(first: Interface, second: Interface) -> bool:
    networks = {ipaddress.ip_interface(text).network for text in first.addresses}
    return any(ipaddress.ip_interface(text).network in networks for text in second.addresses)


def _network(text: str) -> Optional[_Network]:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _merits(interface: Interface) -> str:
    merits = ["EFA or InfiniBand"] if interface.rdma else []
    if interface.speed_mbps:
        merits.append(f"{interface.speed_mbps} Mbit/s")
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

"""The node's network interfaces as Linux lists them: /sys/class/net, ioctl and /proc, no `ip` command needed."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from ipaddress import IPv4Network
from typing import Dict, List, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit

from muster_worker.interface_choice import Interface

# linux/sockios.h
_SIOCGIFFLAGS = 0x8913
_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B
# linux/if.h
_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8

_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"


def list_interfaces() -> Tuple[Interface, ...]:
    """All interfaces with at least a name. What the kernel doesn't tell of one is left at its default."""
    rdma = _rdma_devices()
    addresses6 = _addresses6()
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            flags = _flags(probe, name)
            found.append(
                Interface(
                    name=name,
                    addresses=_addresses4(probe, name) + tuple(addresses6.get(name, ())),
                    up=bool(flags & _IFF_UP) and _read(name, "operstate") != "down",
                    loopback=bool(flags & _IFF_LOOPBACK),
                    rdma=_device(f"{_NET}/{name}/device") in rdma,
                    speed_mbps=_speed(name),
                )
            )
    return tuple(found)


def routed_interface(collector_url: str, interfaces: Sequence[Interface]) -> Optional[str]:
    """The interface that packets to the collector leave by; None when nothing leads there or its name is unknown."""
    target = urlsplit(collector_url)
    try:
        resolved = socket.getaddrinfo(target.hostname, target.port or 443, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, _, _, address in resolved:
        try:
            with socket.socket(family, kind) as probe:
                probe.connect(address)  # UDP: nothing is sent
                own = probe.getsockname()[0]
        except OSError:
            continue
        for interface in interfaces:
            if any(text.split("/")[0] == own for text in interface.addresses):
                return interface.name
            # every 127.x.x.x is this machine, listed or not
            if interface.loopback and own.startswith("127."):
                return interface.name
    return None


def _request(probe: socket.socket, code: int, name: str) -> Optional[bytes]:
    try:
        return fcntl.ioctl(probe.fileno(), code, struct.pack("256s", name.encode()[:15]))
    except OSError:
        return None


def _flags(probe: socket.socket, name: str) -> int:
    answer = _request(probe, _SIOCGIFFLAGS, name)
    return struct.unpack("16xH", answer[:18])[0] if answer else 0


def _addresses4(probe: socket.socket, name: str) -> Tuple[str, ...]:
    address = _request(probe, _SIOCGIFADDR, name)
    mask = _request(probe, _SIOCGIFNETMASK, name)
    if address is None or mask is None:
        return ()
    length = IPv4Network(f"0.0.0.0/{socket.inet_ntoa(mask[20:24])}").prefixlen
    return (f"{socket.inet_ntoa(address[20:24])}/{length}",)


def _addresses6() -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            lines = file.read().split("\n")
    except OSError:
        return found
    for line in lines:
        address, _, length, scope, _, *name = line.split() or [""] * 5
        # scope 0x20 is link-local: it means nothing to another node
        if name and scope != "20":
            text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))
            found.setdefault(name[0], []).append(f"{text}/{int(length, 16)}")
    return found


def _rdma_devices() -> Set[Optional[str]]:
    try:
        names = os.listdir(_RDMA)
    except OSError:
        return set()
    return {_device(f"{_RDMA}/{name}/device") for name in names} - {None}


def _device(link: str) -> Optional[str]:
    return os.path.realpath(link) if os.path.exists(link) else None


def _speed(name: str) -> int:
    text = _read(name, "speed")
    return max(0, int(text)) if text.lstrip("-").isdigit() else 0


def _read(name: str, what: str) -> str:
    try:
        with open(f"{_NET}/{name}/{what}", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""

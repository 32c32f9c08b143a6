"""Lists the node's network interfaces with /sys/class/net, ioctl and netlink, without the `ip` command."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit

from muster_worker.network.interface_choice import Interface

# linux/sockios.h
_SIOCGIFFLAGS = 0x8913
# linux/if.h
_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8
# linux/netlink.h, linux/rtnetlink.h
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_RTM_NEWADDR = 20
_RTM_GETADDR = 22
_NLM_F_REQUEST = 0x1
_NLM_F_DUMP = 0x300
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
# linux/if_addr.h
_MESSAGE = struct.Struct("=BBBBI")  # struct ifaddrmsg
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_FLAGS = 8
_IFA_F_TEMPORARY = 0x01
_IFA_F_DADFAILED = 0x08
_IFA_F_DEPRECATED = 0x20
_RT_SCOPE_LINK = 253

_ANSWER_BYTES = 1 << 16
"""Buffer for one netlink answer: the kernel fills pages of 32 KiB."""

_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"
_VERBS = "/dev/infiniband"


def list_interfaces() -> Tuple[Interface, ...]:
    """Return all interfaces of the node. Unknown properties keep their defaults."""
    rdma = _list_rdma_devices()
    addresses = _read_addresses()
    result = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for index, name in socket.if_nameindex():
            flags = _read_flags(probe, name)
            result.append(
                Interface(
                    name=name,
                    addresses=tuple(addresses.get(index, ())),
                    up=bool(flags & _IFF_UP) and _read(name, "operstate") != "down",
                    loopback=bool(flags & _IFF_LOOPBACK),
                    rdma=_resolve_device(f"{_NET}/{name}/device") in rdma,
                    speed_mbps=_read_speed_mbps(name),
                )
            )
    return tuple(result)


def has_verbs() -> bool:
    """Whether this process can open an RDMA device. /sys lists the machine's devices in every container."""
    try:
        return any(name.startswith("uverbs") for name in os.listdir(_VERBS))
    except OSError:
        return False


def find_route_interface(collector_url: str, interfaces: Sequence[Interface]) -> Optional[str]:
    """Return the interface on the route to the collector; None if there is no route or the name doesn't resolve."""
    target = urlsplit(collector_url)
    try:
        resolved = socket.getaddrinfo(target.hostname, target.port or 443, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, _, _, address in resolved:
        try:
            with socket.socket(family, kind) as probe:
                probe.connect(address)  # UDP: this sends no packet
                local_address = probe.getsockname()[0]
        except OSError:
            continue
        for interface in interfaces:
            if any(text.split("/")[0] == local_address for text in interface.addresses):
                return interface.name
            # all of 127.0.0.0/8 is this machine
            if interface.loopback and local_address.startswith("127."):
                return interface.name
    return None


def _read_flags(probe: socket.socket, name: str) -> int:
    try:
        answer = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, struct.pack("256s", name.encode()[:15]))
    except OSError:
        return 0
    return int(struct.unpack("16xH", answer[:18])[0])


def _read_addresses() -> Dict[int, List[str]]:
    """Return all addresses by interface index, in the order of getifaddrs, including secondary addresses."""
    result: Dict[int, List[str]] = {}
    # NCCL and gloo use getifaddrs, which also reads netlink. ioctl returns only one IPv4 address per interface.
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        request = _MESSAGE.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        length = _HEADER.size + len(request)
        kernel.send(_HEADER.pack(length, _RTM_GETADDR, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0) + request)
        while True:
            for kind, body in _split_messages(kernel.recv(_ANSWER_BYTES)):
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return result
                if kind == _RTM_NEWADDR:
                    index, text = _read_address(body)
                    if text is not None:
                        result.setdefault(index, []).append(text)


def _split_messages(data: bytes) -> Iterator[Tuple[int, bytes]]:
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        yield kind, data[offset + _HEADER.size : offset + length]
        offset += _align(max(length, _HEADER.size))


def _read_address(body: bytes) -> Tuple[int, Optional[str]]:
    """Return the interface's index, and its address with prefix length, or None if peers can't use it permanently."""
    family, prefix, flags, scope, index = _MESSAGE.unpack_from(body)
    attributes = dict(_split_attributes(body[_MESSAGE.size :]))
    if _IFA_FLAGS in attributes:
        flags = struct.unpack("=I", attributes[_IFA_FLAGS])[0]
    # On a point-to-point link, IFA_ADDRESS is the peer's.
    packed = attributes.get(_IFA_LOCAL, attributes.get(_IFA_ADDRESS))
    if packed is None or family not in (socket.AF_INET, socket.AF_INET6):
        return index, None
    # link-local addresses don't reach other nodes
    unusable = scope == _RT_SCOPE_LINK or flags & (_IFA_F_TEMPORARY | _IFA_F_DEPRECATED | _IFA_F_DADFAILED)
    if family == socket.AF_INET6 and unusable:
        return index, None
    return index, f"{socket.inet_ntop(family, packed)}/{prefix}"


def _split_attributes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        yield kind, data[offset + 4 : offset + length]
        offset += _align(max(length, 4))


def _align(length: int) -> int:
    return (length + 3) & ~3


def _list_rdma_devices() -> Set[Optional[str]]:
    try:
        names = os.listdir(_RDMA)
    except OSError:
        return set()
    return {_resolve_device(f"{_RDMA}/{name}/device") for name in names} - {None}


def _resolve_device(link: str) -> Optional[str]:
    return os.path.realpath(link) if os.path.exists(link) else None


def _read_speed_mbps(name: str) -> int:
    text = _read(name, "speed")
    return max(0, int(text)) if text.lstrip("-").isdigit() else 0


def _read(name: str, file_name: str) -> str:
    try:
        with open(f"{_NET}/{name}/{file_name}", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""

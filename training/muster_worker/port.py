"""A port that is free and stays so until the rendezvous takes it."""

from __future__ import annotations

import ipaddress
import socket


def hold_port(address: str) -> socket.socket:
    """Bind a free port of `address` without listening, and keep it: `getsockname()[1]` of what is returned.

    With SO_REUSEADDR on both sides Linux lets a second socket bind a port that nobody listens on, and TCPStore asks
    for it (tested with torch 2.15, with and without libuv). Whoever lets the kernel choose a port is given another
    one, so runs started side by side don't meet.
    """
    is_ipv4 = isinstance(ipaddress.ip_address(address), ipaddress.IPv4Address)
    family = socket.AF_INET if is_ipv4 else socket.AF_INET6
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, 0))
    except OSError:
        held.close()
        raise
    return held

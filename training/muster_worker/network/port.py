"""A port that is free and stays so until the rendezvous takes it."""

from __future__ import annotations

import socket


def hold_port() -> socket.socket:
    """Bind a port that is free on all addresses, and keep it without listening: `getsockname()[1]` of what is returned.

    All addresses: which of them a node is met at is settled when all nodes are known. Raises `OSError` without a port.

    With SO_REUSEADDR on both sides Linux lets a second socket bind a port that nobody listens on, and TCPStore asks
    for it (tested with torch 2.15, with and without libuv). Whoever lets the kernel choose a port is given another
    one, so runs started side by side don't meet.
    """
    try:
        return _bound(socket.AF_INET6, "::")
    except OSError:
        return _bound(socket.AF_INET, "0.0.0.0")  # noqa: S104 - a kernel without IPv6; nobody listens


def _bound(family: socket.AddressFamily, address: str) -> socket.socket:
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, 0))
    except OSError:
        held.close()
        raise
    return held

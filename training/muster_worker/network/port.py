"""Holds free ports: for the rendezvous, and for pings from other nodes."""

from __future__ import annotations

import socket


def hold_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Bind a free port on all addresses without listening. `getsockname()[1]` of the result is its number.

    Bind all addresses, because the operator selects the node's address later. Raises `OSError` without a port.

    If both sockets have SO_REUSEADDR, Linux lets the second one bind a port without a listener. TCPStore sets
    SO_REUSEADDR (tested with torch 2.15, with and without libuv). The kernel assigns this port to no other process, so
    jobs that start at the same time don't conflict.
    """
    try:
        return _bind(socket.AF_INET6, kind, "::")
    except OSError:
        return _bind(socket.AF_INET, kind, "0.0.0.0")  # noqa: S104 - a kernel without IPv6; the port never listens


def hold_another_port(port_socket: socket.socket) -> socket.socket:
    """Hold another port and close `port_socket`. Returns `port_socket` if no port is free."""
    try:
        result = hold_port()
    except OSError:
        return port_socket
    port_socket.close()
    return result


def _bind(family: socket.AddressFamily, kind: socket.SocketKind, address: str) -> socket.socket:
    bound_socket = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            bound_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Two sockets for datagrams with this option would share the port.
        if kind == socket.SOCK_STREAM:
            bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound_socket.bind((address, 0))
    except OSError:
        bound_socket.close()
        raise
    return bound_socket

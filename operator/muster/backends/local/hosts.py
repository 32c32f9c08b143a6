"""The host names and addresses of a local run's nodes. Pure.

Each node has its own loopback address, so that nodes can listen on the same port, and concurrent runs don't collide.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address


def derive_node_address(uid: str, node: int) -> str:
    """Return 127.a.b.(node + 1), with a and b from the run's uid; never in 127.0.0.0/16, which other services use."""
    digest = hashlib.sha256(uid.encode("utf-8")).digest()
    second = 1 + digest[0] % 200
    base = int(IPv4Address(f"127.{second}.{digest[1]}.0"))
    return str(IPv4Address(base + node + 1))


def render_hosts_file(uid: str, job: str, nodes: int, machine: str) -> str:
    """Return a hosts file with SageMaker's names (algo-1, ...), the nodes' own names, and the entries in `machine`."""
    lines = [f"{derive_node_address(uid, node)} algo-{node + 1} {job}-{node}" for node in range(nodes)]
    return "\n".join([*lines, machine.rstrip("\n"), ""])

"""Names and addresses of a local run's nodes. Pure.

Every node has a loopback address of its own, so that two nodes can listen on one port as two machines can, and runs
started side by side don't meet.
"""

from __future__ import annotations

import hashlib
from ipaddress import IPv4Address


def node_address(uid: str, node: int) -> str:
    """127.a.b.(node + 1), a and b from the run's uid; outside 127.0.0.0/16, where machines have their own services."""
    digest = hashlib.sha256(uid.encode("utf-8")).digest()
    second = 1 + digest[0] % 200
    base = int(IPv4Address(f"127.{second}.{digest[1]}.0"))
    return str(IPv4Address(base + node + 1))


def hosts_file(uid: str, job: str, nodes: int, machine: str) -> str:
    """The nodes' names before the machine's own hosts file: SageMaker's algo-1..N and the nodes' own."""
    lines = [f"{node_address(uid, node)} algo-{node + 1} {job}-{node}" for node in range(nodes)]
    return "\n".join([*lines, machine.rstrip("\n"), ""])

"""The names by which an mpirun knows a rank group's nodes, and the files in which it finds them. Pure."""

from __future__ import annotations

import ipaddress
from typing import Optional, Sequence

from muster_worker.contract.schema import Peer
from muster_worker.sagemaker.container import host_names


def launch_names(peers: Sequence[Peer]) -> Sequence[str]:
    """What the host files call the nodes: their addresses, or algo-1, algo-2, ... where those don't tell them apart.

    With addresses no name has to resolve. Open MPI 4 tries, and a name server that doesn't answer makes a start of 64
    nodes take 47 s instead of 2. Nodes on one machine share an address, and `host:slots` leaves no room for IPv6.
    A node alone is called as every mpirun calls its own machine.
    """
    if len(peers) == 1:
        return ("localhost",)
    addresses = [peer.address for peer in peers]
    apart = len(set(addresses)) == len(addresses)
    if apart and all(ipaddress.ip_address(address).version == 4 for address in addresses):  # noqa: PLR2004 - IPv4
        return addresses
    return host_names(len(peers))


def open_mpi_file(names: Sequence[str], slots: int) -> str:
    """A host file for Open MPI."""
    return "".join(f"{name} slots={slots}\n" for name in names)


def hydra_file(names: Sequence[str], slots: int) -> str:
    """A host file for MPICH and Intel MPI."""
    return "".join(f"{name}:{slots}\n" for name in names)


def find(host: str, job: str, peers: Sequence[Peer]) -> Optional[Peer]:
    """The node that `host` means: algo-2, <job>-1 or its address, with or without a domain; None when none does."""
    for name in (host, host.partition(".")[0]):
        for peer, own in zip(peers, host_names(len(peers))):
            if name in (own, f"{job}-{peer.node}"):
                return peer
    result = [peer for peer in peers if peer.address == host.strip("[]")]
    return result[0] if len(result) == 1 else None

"""Detects networks over which an mpirun can't reach the other nodes, before its start. Pure."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from muster_worker.contract.schema import AgentProblem, Mpi
from muster_worker.network.interface_choice import Interface

NETWORK_UNSUPPORTED = "NetworkUnsupported"

_IPV4_ONLY = {Mpi.MPICH: ("MPICH", "HYDRA_IFACE"), Mpi.INTEL_MPI: ("Intel MPI", "I_MPI_HYDRA_IFACE")}
"""Implementations whose Hydra opens IPv4 sockets only, with the variable for its interface.

Sources: MPICH 5.0, src/pm/hydra/lib/utils/sock.c; Intel MPI 2021.18 prints the same error ("unable to find interface").
"""


def find_problem(kind: str, environment: Mapping[str, str], interfaces: Sequence[Interface]) -> Optional[AgentProblem]:
    """Why the daemons of this implementation's mpirun can't connect back to it; None if they can.

    `interfaces` are node 0's. The daemons use the variable's interface, or without it any that is not loopback.
    """
    if kind not in _IPV4_ONLY:
        return None
    name, variable = _IPV4_ONLY[kind]
    interface_name = environment.get(variable)
    used = [
        item
        for item in interfaces
        if (item.name == interface_name if interface_name is not None else not item.loopback)
    ]
    addresses = [address for item in used for address in item.addresses]
    if any(":" not in address for address in addresses):
        return None
    found_addresses = ", ".join(addresses) or "no address"
    return AgentProblem(
        NETWORK_UNSUPPORTED,
        f"{name}'s mpirun reaches other nodes over IPv4 only, and {interface_name or 'node 0'} has {found_addresses}:"
        " name an IPv4 network in spec.network.interface, or use Open MPI, which starts over IPv6",
    )

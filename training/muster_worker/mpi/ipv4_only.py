"""Detects before the start of mpirun that it can't reach the other nodes over IPv6. Pure."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import AgentProblem
from muster_worker.network.interface_choice import Interface

NETWORK_UNSUPPORTED = "NetworkUnsupported"

_IPV4_ONLY = {Mpi.MPICH: ("MPICH", "HYDRA_IFACE"), Mpi.INTEL_MPI: ("Intel MPI", "I_MPI_HYDRA_IFACE")}
"""Implementations whose Hydra opens only IPv4 sockets, with the variable for Hydra's interface.

Sources: MPICH 5.0, src/pm/hydra/lib/utils/sock.c; Intel MPI 2021.18 prints the same error ("unable to find interface").
"""


def find_problem(
    implementation: str, environment: Mapping[str, str], interfaces: Sequence[Interface]
) -> Optional[AgentProblem]:
    """Return the reason why the daemons of this implementation can't connect to mpirun; None if they can.

    `interfaces` are those of node 0. The daemons use the interface in the variable, or else any except loopback.
    """
    if implementation not in _IPV4_ONLY:
        return None
    name, variable = _IPV4_ONLY[implementation]
    interface_name = environment.get(variable)
    used_interfaces = [
        item
        for item in interfaces
        if (item.name == interface_name if interface_name is not None else not item.loopback)
    ]
    addresses = [address for item in used_interfaces for address in item.addresses]
    if any(":" not in address for address in addresses):
        return None
    found_addresses = ", ".join(addresses) or "no address"
    return AgentProblem(
        NETWORK_UNSUPPORTED,
        f"{name}'s mpirun reaches other nodes over IPv4 only, and {interface_name or 'node 0'} has {found_addresses}:"
        " name an IPv4 network in spec.network.interface, or use Open MPI, which starts over IPv6",
    )

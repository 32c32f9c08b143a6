"""Why an mpirun could not reach the other nodes over the network that they met on, told before it is tried. Pure."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from muster_worker.contract.schema import AgentProblem, Mpi
from muster_worker.network.interface_choice import Interface

NETWORK_UNSUPPORTED = "NetworkUnsupported"

_IPV4_ONLY = {Mpi.MPICH: ("MPICH", "HYDRA_IFACE"), Mpi.INTEL_MPI: ("Intel MPI", "I_MPI_HYDRA_IFACE")}
"""Whose mpirun is a Hydra, which opens IPv4 sockets only, and the variable that names its interface.

MPICH 5.0, src/pm/hydra/lib/utils/sock.c; Intel MPI 2021.18 says the same words ("unable to find interface").
"""


def find_problem(kind: str, environment: Mapping[str, str], interfaces: Sequence[Interface]) -> Optional[AgentProblem]:
    """What keeps this implementation's mpirun, started in `environment`, from being called back by other nodes.

    `interfaces` are node 0's. Which of them its daemons call is its variable's word, or any that leads out.
    """
    if kind not in _IPV4_ONLY:
        return None
    name, variable = _IPV4_ONLY[kind]
    named = environment.get(variable)
    used = [item for item in interfaces if (item.name == named if named is not None else not item.loopback)]
    addresses = [address for item in used for address in item.addresses]
    if any(":" not in address for address in addresses):
        return None
    there = ", ".join(addresses) or "no address"
    return AgentProblem(
        NETWORK_UNSUPPORTED,
        f"{name}'s mpirun reaches other nodes over IPv4 only, and {named or 'node 0'} has {there}:"
        " name an IPv4 network in spec.network.interface, or use Open MPI, which starts over IPv6",
    )

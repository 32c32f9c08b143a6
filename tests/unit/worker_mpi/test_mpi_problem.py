"""The interfaces that an mpirun doesn't support."""

import pytest

from muster_worker.contract.mpi import Mpi
from muster_worker.mpi.ipv4_only import find_problem
from muster_worker.network.interface_choice import Interface

LO = Interface("lo", ("127.0.0.1/8", "::1/128"), loopback=True)
FOUR = Interface("eth0", ("10.0.0.7/16",))
SIX = Interface("six0", ("fd81::11/64",))
BOTH = Interface("two0", ("fd80::11/64", "10.80.0.11/16"))
SIX_OF_HYDRA = {"HYDRA_IFACE": "six0"}


@pytest.mark.parametrize(
    ("kind", "environment", "interfaces"),
    [
        (Mpi.OPEN_MPI, SIX_OF_HYDRA, (LO, SIX)),
        (Mpi.MPICH, {"HYDRA_IFACE": "two0"}, (LO, SIX, BOTH)),
        (Mpi.MPICH, {"HYDRA_IFACE": "eth0"}, (LO, FOUR, SIX)),  # the owner's own setting
        (Mpi.MPICH, {}, (LO, FOUR, SIX)),  # it resolves the name of node 0
        (Mpi.INTEL_MPI, {**SIX_OF_HYDRA, "I_MPI_HYDRA_IFACE": "two0"}, (SIX, BOTH)),
    ],
)
def test_no_problem(kind: str, environment: dict[str, str], interfaces: tuple[Interface, ...]) -> None:
    assert find_problem(kind, environment, interfaces) is None


@pytest.mark.parametrize(
    ("kind", "environment", "interfaces", "says"),
    [
        (
            Mpi.MPICH,
            SIX_OF_HYDRA,
            (LO, FOUR, SIX),
            "MPICH's mpirun reaches other nodes over IPv4 only, and six0 has fd8",
        ),
        (
            Mpi.INTEL_MPI,
            {"I_MPI_HYDRA_IFACE": "six0"},
            (LO, FOUR, SIX),
            "Intel MPI's mpirun reaches other nodes over I",
        ),
        (
            Mpi.MPICH,
            {},
            (LO, SIX),
            "MPICH's mpirun reaches other nodes over IPv4 only, and node 0 has fd81::11/64: name",
        ),
        (
            Mpi.MPICH,
            {"HYDRA_IFACE": "ib9"},
            (LO, SIX),
            "MPICH's mpirun reaches other nodes over IPv4 only, and ib9 has no",
        ),
    ],
)
def test_a_problem(kind: str, environment: dict[str, str], interfaces: tuple[Interface, ...], says: str) -> None:
    result = find_problem(kind, environment, interfaces)
    assert result is not None
    assert result.message.startswith(says)

"""MPI between machines with several networks: daemons and messages use the agents' network."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster_worker.contract.schema import CommandKind, Launcher
from muster_worker.mpi.ipv4_only import NETWORK_UNSUPPORTED
from support.agent_machines import Machines, machines_for
from support.mpi_installs import Install, install_or_skip

# It makes network namespaces.
pytestmark = pytest.mark.long

SENT = 8 << 20
SUM = f"""
import os, sys
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(bytes({SENT}))
print("HELD", len(total), flush=True)
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with machines_for(tmp_path) as made:
        yield made


@pytest.mark.parametrize("interface", ["Auto", "10.79.0.0/16"])
def test_messages_and_daemons_use_the_fabric(machines: Machines, mpi: Install, interface: str) -> None:
    world = machines.connect().world
    world.make_plan(sys.executable, world.write_script(SUM), launcher=Launcher.MPI, nodes=2, interface=interface)
    before = machines.count_sent_bytes("eth0")

    # MPICH's UCX detects that both machines are the same, and would use shared memory
    world.launch(environment=mpi.add_to({**os.environ, "UCX_TLS": "tcp,self"}))

    ended = world.wait_ended(0)
    assert [rank.exit_code for rank in ended.ranks] == [0], world.log(0) + world.log(1)
    world.send(CommandKind.STOP, grace=2.0)
    assert [rank.exit_code for rank in world.wait_ended(1).ranks] == [0]
    for number in range(2):
        assert f"HELD {2 * SENT}" in world.log(number)
    assert all(sent > SENT for sent in machines.count_sent_bytes("fabric0"))
    assert all(sent - then < SENT for sent, then in zip(machines.count_sent_bytes("eth0"), before, strict=True))


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"], indirect=True)
def test_what_the_images_file_excludes_stays_excluded(machines: Machines, mpi: Install) -> None:
    world = machines.connect().world
    home = world.folder / "home"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi" / "mca-params.conf").write_text("btl_tcp_if_exclude = lo,eth0,fabric10,six0\n")
    world.make_plan(sys.executable, world.write_script(SUM), launcher=Launcher.MPI, nodes=2)
    world.launch(environment=mpi.add_to({**os.environ, "HOME": str(home)}))
    ended = world.wait_ended(0)
    assert [rank.exit_code for rank in ended.ranks] == [0], world.log(0) + world.log(1)
    assert "mutually-exclusive" not in world.log(0) + world.log(1)
    assert all(sent > SENT for sent in machines.count_sent_bytes("fabric0"))


@pytest.mark.parametrize(("name", "whose"), [("mpich", "MPICH"), ("impi", "Intel MPI")])
@pytest.mark.parametrize("command", [("true",), ("mpirun", "-np", "2", "true")], ids=["ours", "own"])
def test_an_mpirun_that_knows_no_ipv6_is_not_started_there(
    machines: Machines, name: str, whose: str, command: tuple[str, ...]
) -> None:
    world = machines.connect().world
    world.make_plan(*command, launcher=Launcher.MPI, nodes=2, interface="six0")
    world.launch(environment=install_or_skip(name).add_to(os.environ))
    report = world.wait_ended(0)
    assert report.problem is not None, world.log(0)
    assert report.problem.reason == NETWORK_UNSUPPORTED
    assert report.problem.message.startswith(
        f"{whose}'s mpirun reaches other nodes over IPv4 only, and six0 has fd81::11/64: "
    )
    assert report.launcher is None


@pytest.mark.parametrize(("name", "interface"), [("openmpi4", "six0"), ("openmpi5", "six0"), ("mpich", "fd80::/16")])
def test_what_starts_where_the_address_is_ipv6(machines: Machines, name: str, interface: str) -> None:
    """Open MPI supports it; Hydra takes the same interface's IPv4 address."""
    world = machines.connect().world
    world.make_plan(sys.executable, world.write_script(SUM), launcher=Launcher.MPI, nodes=2, interface=interface)
    world.launch(environment=install_or_skip(name).add_to({**os.environ, "UCX_TLS": "tcp,self"}))
    assert [rank.exit_code for rank in world.wait_ended(0).ranks] == [0], world.log(0) + world.log(1)

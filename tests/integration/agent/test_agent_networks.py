"""Nodes with several interfaces, in network namespaces: the interface that agents and libraries use, or why there is
none.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.api.status.status import Status
from muster.core.facts import JobFacts
from muster_dev.paths import ROOT
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, Launcher
from muster_worker.network.interface_choice import Interface
from support.agent_machines import Machines, machines_for
from support.agent_world import JOB, make_facts
from unit.core.builders import compute_status, job

TRAINING = ROOT / "training"
# It makes network namespaces.
pytestmark = pytest.mark.long

NCCL = Path(__file__).with_name("nccl_workload.py")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with machines_for(tmp_path) as made:
        yield made


def test_all_addresses_are_seen(machines: Machines) -> None:
    first, second = machines.nodes
    pairs = [("10.81.0.1/24", "10.81.0.2/24"), ("10.81.0.3/24", "10.81.0.4/24"), ("10.82.0.1/16", "10.82.0.2/16")]
    first.connect(second, "many0", *pairs, ("fd82::1/64", "fd82::2/64"), ("fd83::1/64", "fd83::2/64"))
    first.run_ip(
        "addr add 10.83.0.1 peer 10.83.0.9 dev many0",
        "addr add fd84::1/64 dev many0 preferred_lft 0 valid_lft 600 nodad",  # a deprecated address
        "link add name down0 type veth peer name up0",
        "addr add 10.84.0.1/24 dev down0",
    )
    look = "from muster_worker.network.interfaces import list_interfaces; print(list_interfaces())"
    command = [*first.within, "env", f"PYTHONPATH={TRAINING}", sys.executable, "-c", look]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = {one.name: one for one in eval(said, {"Interface": Interface})}  # noqa: S307 - the output of repr
    listed = ("10.81.0.1/24", "10.82.0.1/16", "10.83.0.1/32", "10.81.0.3/24", "fd83::1/64", "fd82::1/64")
    assert (set(result["many0"].addresses), result["many0"].speed_mbps) == (set(listed), 10_000)
    # in the order of getifaddrs: libraries that take names use the first address
    assert result["many0"].addresses[0] == "10.81.0.1/24"
    assert (result["down0"].up, result["down0"].addresses) == (False, ("10.84.0.1/24",))
    assert (result["lo"].loopback, result["lo"].addresses) == (True, ("127.0.0.1/8", "::1/128"))


@pytest.mark.parametrize(
    ("wanted", "name", "address"),
    [
        ("Auto", "eth0", None),
        ("fabric0", "fabric0", "10.79.0.11"),
        ("fabric1", None, None),  # no prefix: fabric10 is another one
        ("fabric1*", "fabric10", "10.80.0.11"),
        ("ib0,fabric10", "fabric10", "10.80.0.11"),
        ("^eth,lo", "fabric0", "10.79.0.11"),
        ("10.80.0.0/16", "fabric10", "10.80.0.11"),
        ("fd80::/16", "fabric10", "fd80::11"),  # it also has an IPv4 address
        ("fd81::/16", "six0", "fd81::11"),
        ("six*", "six0", "fd81::11"),
    ],
)
def test_nccl_takes_the_interface_that_the_agent_chose(
    machines: Machines, wanted: str, name: str | None, address: str | None
) -> None:
    machines.connect()
    world = machines.world
    world.make_plan(sys.executable, str(NCCL), interface=wanted)
    world.start_agent()
    ready = world.wait(0, lambda report: report.phase == AgentPhase.READY)
    assert ready.interface == name
    if name is None:
        assert ready.problem is not None
        assert ready.problem.reason == "NoInterface"
        return
    address = address or machines.nodes[0].address
    assert ready.address == address
    world.send(CommandKind.START)
    assert world.wait_ended().ranks[0].exit_code == 0, world.log()
    # The agent may report a rank's end before it has written the rank's last lines.
    world.wait_said(0, f"Bootstrap: Using {name}:{address}<0>", 1)


def test_auto_takes_the_network_that_all_nodes_share(machines: Machines) -> None:
    machines.connect()
    script = machines.world.write_script(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "ones = torch.ones(4 << 20)\n"
        "dist.all_reduce(ones)\n"
        "assert ones.sum() == 2 * ones.numel()\n"
    )
    machines.world.make_plan(sys.executable, script, nodes=2)
    before = machines.count_sent_bytes("eth0")

    machines.world.launch()

    for number, node in enumerate(machines.nodes):
        ended = machines.world.wait_ended(number)
        assert [rank.exit_code for rank in ended.ranks] == [0], machines.world.log(number)
        assert (ended.interface, ended.address) == ("fabric0", f"10.79.0.{11 + number}")
        why = "on its network 10.79.0.0/16, 10000 Mbit/s; eth0, on the route to the operator, is equally fast"
        assert ended.interface_why == f"all nodes of the job are {why}"
        assert node.read_sent_bytes("fabric0") > 8 << 20
        assert node.read_sent_bytes("eth0") - before[number] < 1 << 20
        config = machines.world.get_root(number) / "input/config/resourceconfig.json"
        assert '"network_interface_name": "fabric0"' in config.read_text()


@pytest.mark.parametrize(
    ("route", "why"),
    [(None, "Network is unreachable"), ("dev eth0", "No route to host")],
)
def test_an_unreachable_peer_is_a_problem(machines: Machines, route: str | None, why: str) -> None:
    first, second = machines.nodes
    if route is not None:
        second.run_ip(f"route add {first.address}/32 {route}")
    machines.world.make_plan("sleep", "60", nodes=2)
    machines.world.launch()

    report = machines.world.wait_ended(1)

    assert report.problem is not None
    assert report.problem.reason == "PeerUnreachable"
    assert report.problem.message == (
        f"node 0 at {first.address} (eth0) can't be reached from {second.address} (eth0): {why} for 10 s; "
        "look at routes, firewalls and NetworkPolicies between the nodes, or set spec.network.interface"
    )
    assert report.ranks[0].pid is None
    reports = (machines.world.collector.reports[0][-1][1], report)
    assert reports[0].phase == AgentPhase.RUNNING
    status = compute_status(job(procs=1), Status(), JobFacts(0.0, make_facts(reports), 5.0), 30.0)
    assert status.message.startswith(f"digits-1 can't work: node 0 at {first.address} (eth0) can't be reached")
    assert {(entry.type, entry.reason) for entry in status.conditions} >= {("Failed", "Stopping")}


def test_a_stop_ends_the_look_for_a_peer(machines: Machines) -> None:
    machines.world.make_plan("sleep", "60", nodes=2)
    machines.world.launch()
    machines.world.wait(1, lambda report: report.phase == AgentPhase.RUNNING)
    machines.world.collector.set_command(1, Command(1, JOB, 1, CommandKind.STOP, grace_seconds=2.0))
    report = machines.world.wait_ended(1)
    assert (report.problem, report.ranks[0].pid) == (None, None)


def test_torchrun_meets_at_the_network_that_is_left(machines: Machines) -> None:
    machines.connect()
    script = machines.world.write_script("import os\nprint('met at', os.environ['MASTER_ADDR'])\n")
    machines.world.make_plan(sys.executable, script, launcher=Launcher.TORCHRUN, nodes=2, interface="^eth")
    machines.world.launch()
    for number in range(2):
        assert machines.world.wait_ended(number).ranks[0].exit_code == 0, machines.world.log(number)
        assert "met at 10.79.0.11" in machines.world.log(number)

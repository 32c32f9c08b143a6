"""Nodes with several interfaces, in network namespaces: which one agents and libraries use, or why none."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_world import JOB, AgentWorld
from muster.plan.facts import AgentFacts, NodeFacts, ProcessFacts, ProcessState
from muster.plan.meeting import meet
from muster_worker.contract import AgentPhase, Command, CommandKind, Launcher, Report
from network_nodes import NetworkNode, need_namespaces

NCCL = Path(__file__).with_name("nccl_workload.py")


@dataclass
class Machines:
    """Two machines without a way between them, and the job's world."""

    world: AgentWorld
    nodes: tuple[NetworkNode, NetworkNode]

    def connect(self) -> None:
        """A fabric between them, and two more cables."""
        first, second = self.nodes
        first.connect(second, "fabric0", ("10.79.0.11/16", "10.79.0.12/16"))
        first.connect(second, "fabric10", ("10.80.0.11/16", "10.80.0.12/16"), ("fd80::11/64", "fd80::12/64"))
        first.connect(second, "six0", ("fd81::11/64", "fd81::12/64"))

    def start(self) -> tuple[Report, ...]:
        """Start the agents, and what they say when they are ready."""
        assert self.world.plan is not None
        for node in range(self.world.plan.nodes):
            self.world.start_agent(node)
        nodes = range(self.world.plan.nodes)
        return tuple(self.world.wait(node, lambda report: report.phase == AgentPhase.READY) for node in nodes)

    def go(self, reports: tuple[Report, ...]) -> None:
        """Start the ranks as the operator would."""
        process = ProcessFacts(ProcessState.RUNNING)
        facts = (NodeFacts(one.node, f"digits-{one.node}", process, AgentFacts(one, 0.0)) for one in reports)
        command = Command(1, JOB, 1, CommandKind.START, meet(tuple(facts)))
        for report in reports:
            self.world.collector.command(report.node, command)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    need_namespaces()
    with ExitStack() as stack:
        nodes = (stack.enter_context(NetworkNode(0)), stack.enter_context(NetworkNode(1)))
        world = stack.enter_context(AgentWorld(tmp_path, nodes[0].gateway))
        for number, node in enumerate(nodes):
            world.within[number] = node.within
            # the operator is reached by all
            if node.gateway != nodes[0].gateway:
                node.ip(f"route add {nodes[0].gateway}/32 via {node.gateway}")
        yield Machines(world, nodes)


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
        ("fd80::/16", "fabric10", "fd80::11"),  # it has an IPv4 address as well
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
    reports = machines.start()
    assert reports[0].interface == name
    if name is None:
        assert reports[0].problem is not None
        assert reports[0].problem.reason == "NoInterface"
        return
    address = address or machines.nodes[0].address
    assert reports[0].address == address
    machines.go(reports)
    assert world.wait_ended().ranks[0].exit_code == 0, world.log()
    assert f"Bootstrap: Using {name}:{address}<0>" in world.log()


def test_auto_takes_the_network_that_all_nodes_share(machines: Machines) -> None:
    machines.connect()
    script = machines.world.script(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "ones = torch.ones(4 << 20)\n"
        "dist.all_reduce(ones)\n"
        "assert ones.sum() == 2 * ones.numel()\n"
    )
    machines.world.make_plan(sys.executable, script, nodes=2)
    reports = machines.start()
    assert [report.interface for report in reports] == ["eth0", "eth0"]
    before = [node.sent_bytes("eth0") for node in machines.nodes]

    machines.go(reports)

    for number, node in enumerate(machines.nodes):
        ended = machines.world.wait_ended(number)
        assert [rank.exit_code for rank in ended.ranks] == [0], machines.world.log(number)
        assert (ended.interface, ended.address) == ("fabric0", f"10.79.0.{11 + number}")
        why = "on its network 10.79.0.0/16, 10000 Mbit/s, as eth0 has, which leads to the operator"
        assert ended.interface_why == f"all nodes of the job are {why}"
        assert node.sent_bytes("fabric0") > 8 << 20
        assert node.sent_bytes("eth0") - before[number] < 1 << 20
        config = machines.world.root(number) / "input/config/resourceconfig.json"
        assert '"network_interface_name": "fabric0"' in config.read_text()


@pytest.mark.parametrize(
    ("route", "why"),
    [(None, "Network is unreachable"), ("dev eth0", "No route to host")],
)
def test_an_unreachable_peer_is_a_problem(machines: Machines, route: str | None, why: str) -> None:
    first, second = machines.nodes
    if route is not None:
        second.ip(f"route add {first.address}/32 {route}")
    machines.world.make_plan("sleep", "60", nodes=2)
    machines.go(machines.start())

    report = machines.world.wait_ended(1)

    assert report.problem is not None
    assert report.problem.reason == "PeerUnreachable"
    assert report.problem.message == (
        f"node 0 at {first.address} (eth0) can't be reached from {second.address} (eth0): {why} for 10 s; "
        "look at routes, firewalls and NetworkPolicies between the nodes, or set spec.network.interface"
    )
    assert report.ranks[0].pid is None
    assert machines.world.collector.reports[0][-1][1].phase == AgentPhase.RUNNING


def test_a_stop_ends_the_look_for_a_peer(machines: Machines) -> None:
    machines.world.make_plan("sleep", "60", nodes=2)
    machines.go(machines.start())
    machines.world.wait(1, lambda report: report.phase == AgentPhase.RUNNING)
    machines.world.collector.command(1, Command(1, JOB, 1, CommandKind.STOP, grace_seconds=2.0))
    report = machines.world.wait_ended(1, patience=5)
    assert (report.problem, report.ranks[0].pid) == (None, None)


def test_torchrun_meets_at_the_network_that_is_left(machines: Machines) -> None:
    machines.connect()
    script = machines.world.script("import os\nprint('met at', os.environ['MASTER_ADDR'])\n")
    machines.world.make_plan(sys.executable, script, launcher=Launcher.TORCHRUN, nodes=2, interface="^eth")
    machines.go(machines.start())
    for number in range(2):
        assert machines.world.wait_ended(number).ranks[0].exit_code == 0, machines.world.log(number)
        assert "met at 10.79.0.11" in machines.world.log(number)

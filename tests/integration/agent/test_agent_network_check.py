"""The network check between real agents: its measurements, the slow nodes that it names, and that the job continues."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from muster.core.membership.peers import select_peers
from muster.core.status.network import summarise_check
from muster.render.agent_archive import build_agent_archive
from muster_worker.contract import wire
from muster_worker.contract.network import NetworkFigures
from muster_worker.contract.schema import AgentPhase, Command, CommandKind, Launcher, Peer, Report
from muster_worker.network.check_results import Assignment
from muster_worker.network.port import hold_port
from support.agent_world import JOB, PATIENCE, AgentWorld, make_facts
from support.network_nodes import NetworkNode, need_namespaces

# It makes network namespaces.
pytestmark = pytest.mark.long


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[tuple[AgentWorld, tuple[NetworkNode, ...]]]:
    """Three machines on one network, 10.79.0.0/16, with a switch between them."""
    need_namespaces()
    with ExitStack() as stack:
        switch = stack.enter_context(NetworkNode(0))
        switch.run_ip("link add switch type bridge", "link set switch up")
        nodes = tuple(stack.enter_context(NetworkNode(number)) for number in (1, 2, 3))
        world = stack.enter_context(AgentWorld(tmp_path, nodes[0].gateway))
        for number, node in enumerate(nodes):
            node.connect(switch, f"fabric{number}")
            switch.run_ip(f"link set fabric{number} master switch")
            node.run_ip(f"addr add 10.79.0.{11 + number}/16 dev fabric{number}")
            world.within[number] = node.within
            if number:
                node.run_ip(f"route add {nodes[0].gateway}/32 via {node.gateway}")
        yield world, nodes


def reports_of(world: AgentWorld, nodes: int) -> list[Report]:
    """Return the last reports of agents whose ranks have all succeeded."""
    reports = [world.wait_ended(number) for number in range(nodes)]
    for number, report in enumerate(reports):
        assert [rank.exit_code for rank in report.ranks] == [0], world.log(number)
    return reports


def test_a_slow_node_is_named_and_the_job_goes_on(fabric: tuple[AgentWorld, tuple[NetworkNode, ...]]) -> None:
    world, nodes = fabric
    slowed = "qdisc add dev fabric1 root tbf rate 20mbit burst 32kbit latency 50ms"
    subprocess.run([*nodes[1].within, "tc", *slowed.split()], check=True)
    world.make_plan("true", nodes=3, interface="10.79.0.0/16", network_check=True)

    world.launch()

    reports = reports_of(world, 3)
    slow = reports[1].figures
    assert slow is not None
    assert slow.sent_mbps is not None
    assert 10 <= slow.sent_mbps <= 30
    check = summarise_check(make_facts(reports))
    assert check is not None
    assert (check.measured, [slow_node.node for slow_node in check.slow]) == (3, [1]), reports
    assert "digits-1 (" in check.message
    # over the interface that the ranks use
    assert nodes[0].read_sent_bytes("fabric0") > 1 << 20


@pytest.mark.parametrize("launcher", [Launcher.DIRECT, Launcher.TORCHRUN])
def test_figures_come_before_the_ranks(tmp_path: Path, launcher: str) -> None:
    with AgentWorld(tmp_path) as world:
        world.make_plan("true", launcher=launcher, nodes=2, network_check=True)
        world.launch()
        reports = reports_of(world, 2)
        for number, report in enumerate(reports):
            assert report.figures is not None
            assert report.figures.problem is None
            assert report.figures.sent_mbps is not None
            assert report.figures.sent_mbps > 100
            assert report.figures.round_trip_us is not None
            assert 0 < report.figures.round_trip_us < 100_000
            first = next(one for _, one in world.collector.reports[number] if one.ranks and one.ranks[0].pid)
            assert first.figures == report.figures
            assert "Mbit/s sent, round trip " in world.log(number)


def test_a_single_node_measures_nothing(tmp_path: Path) -> None:
    with AgentWorld(tmp_path) as world:
        world.make_plan("true", network_check=True)
        world.launch()
        assert reports_of(world, 1)[0].figures is None


def test_a_stop_ends_the_check(tmp_path: Path) -> None:
    with AgentWorld(tmp_path) as world:
        world.make_plan("sleep", "60", nodes=2, network_check=True)
        world.launch()
        for number in range(2):
            world.wait(number, lambda report: report.phase == AgentPhase.RUNNING)
            world.collector.set_command(number, Command(1, JOB, 1, CommandKind.STOP, grace_seconds=2.0))
        for number in range(2):
            report = world.wait_ended(number)
            assert (report.figures, report.ranks[0].pid) == (None, None)


def test_a_node_that_does_not_answer_is_reported_and_the_ranks_start(tmp_path: Path) -> None:
    with AgentWorld(tmp_path) as world:
        world.make_plan("true", nodes=2, network_check=True)
        for number in range(2):
            world.start_agent(number)
        reports = [world.wait(number, lambda report: report.phase == AgentPhase.READY) for number in range(2)]
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            first, second = select_peers(make_facts(reports))
            peers = (first, replace(second, check_port=mute.getsockname()[1]))
            world.collector.set_command(0, Command(1, JOB, 1, CommandKind.START, peers))
            report = world.wait_ended(0)
        assert [rank.exit_code for rank in report.ranks] == [0]
        assert report.figures is not None
        assert report.figures.problem == ("node 1 at 127.0.0.1 can't be measured: timed out; no data from node 1")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_strangers_get_nothing_and_a_source_is_counted(tmp_path: Path, address: str) -> None:
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build_agent_archive())
    with hold_port() as held:
        own = Peer(0, address, 1, "lo", held.getsockname()[1])
        document = wire.encode(Assignment(own, (), (1,), "k" * 64)).decode()
        command = [sys.executable, "-I", "-S", str(archive), "network-check", document]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as check:
            assert check.stdout is not None
            for hello in (b"x" * 64 + b"\0\0\0\1", b"k" * 64 + b"\0\0\0\2"):
                with connected(own) as stranger:
                    stranger.sendall(hello + b"P" * 64)
                    assert received(stranger) == b""
            with connected(own) as source:
                source.sendall(b"k" * 64 + b"\0\0\0\1" + b"P" * 64)
                assert source.recv(64, socket.MSG_WAITALL) == b"P" * 64
                source.sendall(b"S" * 64 + b"d" * 125_000)
                assert int.from_bytes(source.recv(8, socket.MSG_WAITALL), "big") == 125_000
            assert wire.decode(NetworkFigures, check.stdout.read()) == NetworkFigures(received_mbps=1.0)
            assert check.wait() == 0


def connected(peer: Peer) -> socket.socket:
    """Return a connection, once the server listens."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((peer.address, peer.check_port or 0), PATIENCE)
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.02)


def received(connection: socket.socket) -> bytes:
    """Return the data from the connection; b"" if the other side has closed or reset it."""
    try:
        return connection.recv(64)
    except ConnectionResetError:
        return b""

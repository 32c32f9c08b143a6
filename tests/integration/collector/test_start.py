"""The Start command of the largest gang: it stays within all limits, and is encoded once."""

import asyncio
import os
import socket
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from integration.collector.collector_site import JOB, NODES, Site, collector_site, until
from muster.collector import command_sender
from muster.collector.server.refusal import RefusalReason
from muster.core.facts import AgentFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.membership.peers import select_peers
from muster.core.reports.check import MAX_INTERFACE_CHARS, JobShape, check_report
from muster_worker.agent.collector_client import MAX_ANSWER_BYTES, CollectorClient, TrustedAuthorities
from muster_worker.contract import wire
from muster_worker.contract.network import Link
from muster_worker.contract.schema import Command, CommandKind, Credentials, Peer, Plan, Report
from muster_worker.sagemaker import container

MOST_NODES = 10_000
"""The limit of `spec.nodes`."""


def peer(node: int) -> Peer:
    address = str(IPv6Address(0x20010DB885A308D31319000000000000 + 0x8A2E_0370_7334 + node * 0x1_0001_0001))
    return Peer(node, address, 29_500, "enp193s0f1np1d1", 29_501)


START = Command(
    10**15,
    JOB,
    10**9,
    CommandKind.START,
    tuple(peer(node) for node in range(MOST_NODES)),
    credentials=Credentials("c" * 2_000, "k" * 2_000),
)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with collector_site() as running:
        yield running


def agent(site: Site, node: int, folder: Path) -> CollectorClient:
    token = folder / f"token-{node}"
    token.write_text(site.token(node))
    return CollectorClient(site.url, TrustedAuthorities(site.certificate.authority, lambda: None), str(token))


def ask_and_not_read(site: Site) -> ssl.SSLSocket:
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect((site.host, site.port))
    connection = site.tls().wrap_socket(plain, server_hostname=site.host)
    request = f"GET /v1/command HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token(0)}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


async def test_every_agent_gets_the_start_of_ten_thousand_nodes(site: Site, tmp_path: Path) -> None:
    for node in range(NODES):
        site.store.set_command(JOB, node, START)
    clients = [agent(site, node, tmp_path) for node in range(NODES)]

    result = await asyncio.gather(*(asyncio.to_thread(client.poll_command, None, 5) for client in clients))
    for client in clients:
        client._close()

    assert result == [START] * NODES
    # one object for all, encoded once
    assert [command for command, _ in site.collector._routes._command_sender._encoded.values()] == [START]
    assert not site.collector.refusal_counts


async def test_an_older_agent_gets_it_as_it_is(site: Site) -> None:
    site.store.set_command(JOB, 0, START)

    async with site.client.get(
        f"{site.url}/v1/command", headers={"Authorization": f"Bearer {site.token(0)}", "Accept-Encoding": "identity"}
    ) as answer:
        assert "Content-Encoding" not in answer.headers
        assert wire.decode(Command, await answer.read()) == START


async def test_who_does_not_read_it_loses_its_place(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_sender, "SEND_SECONDS", 0.3)
    monkeypatch.setattr(command_sender, "MAX_LARGE_RESPONSES", 1)
    # more than the kernel's buffers hold
    large = Command(1, JOB, 1, CommandKind.START, START.peers * 8)
    site.store.set_command(JOB, 0, large)
    reader = await asyncio.to_thread(ask_and_not_read, site)

    await until(lambda: bool(site.collector.refusal_counts))

    assert site.collector.refusal_counts == {RefusalReason.TOO_SLOW: 1}
    assert not site.collector._routes._command_sender._slots
    reader.close()


def test_the_longest_start_is_less_than_an_agent_reads() -> None:
    """Each node has the longest interface name and address that the collector accepts."""
    address = "2001:db8:85a3:8d3:1319:8a2e:192.168.254.254"
    shape = JobShape(JOB, MOST_NODES, 128, 0.0)
    nodes = []
    for node in range(MOST_NODES):
        report = Report(JOB, node, 0, 0, 1, "Ready", address, 65_535, 65_535, "i" * MAX_INTERFACE_CHARS)
        if node == 0:
            check_report(report, shape, 10.0)
        process = ProcessFacts(ProcessState.RUNNING)
        nodes.append(NodeFacts(node, f"digits-{node}", process, AgentFacts(report, 10.0)))

    body = wire.encode(
        Command(2**62, JOB, 2**62, CommandKind.START, select_peers(nodes), credentials=START.credentials)
    )

    assert len(select_peers(nodes)) == MOST_NODES
    assert len(body) < MAX_ANSWER_BYTES
    assert len(zlib.compress(wire.encode(START))) < 256 * 1024


def test_a_longer_interface_is_not_believed() -> None:
    shape, name = JobShape(JOB, 1, 1, 0.0), "i" * (MAX_INTERFACE_CHARS + 1)
    for report in (
        Report(JOB, 0, 0, 0, 1, "Ready", interface=name),
        Report(JOB, 0, 0, 0, 1, "Ready", links=(Link(name, "fd00::1/64"),)),
    ):
        with pytest.raises(ValueError, match="too long"):
            check_report(report, shape, 10.0)


def test_a_process_starts_with_the_variables_of_ten_thousand_nodes() -> None:
    plan = Plan(1, "ns", JOB, "uid", MOST_NODES, 8, "torchrun", (), ("x",), {}, (), (), "Auto", "https://x", "pem")

    result = container.build_sagemaker_variables(plan, 3, container.Host(8, 8, "p5", "eth0", "/x"), "/opt/ml")

    said = subprocess.run(
        ["/bin/sh", "-c", "echo $SM_CURRENT_HOST"], env={**os.environ, **result}, check=True, capture_output=True
    )
    assert said.stdout == b"algo-4\n"
    assert "SM_HOSTS" in result
    assert "SM_RESOURCE_CONFIG" not in result

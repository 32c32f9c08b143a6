"""The network of the nodes, from the networks that their agents report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.status.status import Status
from muster.core.actions import SendCommand
from muster.core.decide import decide
from muster.core.facts import NodeFacts
from muster.core.inference import infer
from muster.core.judge import judge
from muster.core.outcome import NETWORK_MISMATCH, Verdict
from muster.core.peers import find_network_mismatch, select_peers
from muster_worker.contract.network import Link
from muster_worker.contract.schema import AgentPhase, CommandKind
from unit.core.builders import START, agent, compute_status, facts, job, node


def met(number: int, *links: Link, machine: str | None = None, pod: str | None = None) -> NodeFacts:
    """Return a ready node with the address of its first link or, after Start, of others."""
    current = agent(number, AgentPhase.READY)
    own = links[0]
    report = replace(
        current.report,
        address=own.address.split("/")[0],
        interface=own.interface,
        speed_mbps=own.speed_mbps,
        links=links,
    )
    there = node(number, replace(current, report=report))
    return replace(there, process=replace(there.process, kube_node=machine, name=pod))


def eth(host: int, speed: int = 10_000, net: int = 77) -> Link:
    return Link("eth0", f"10.{net}.0.{host}/24", speed, to_operator=True)


def apart(link: Link) -> Link:
    """Return the same link, which doesn't connect to the operator."""
    return replace(link, to_operator=False)


def fabric(host: int, speed: int = 10_000, *, rdma: bool = False) -> Link:
    return Link("fabric0", f"10.79.0.{host}/16", speed, rdma)


DOCKER = Link("docker0", "172.17.0.1/16", 100_000)
SIX = tuple(Link("eth0", f"fd00::{host}/64", 10_000) for host in range(4))


def test_peers_know_each_other_s_port_for_the_check() -> None:
    nodes = [replace(one, agent=replace(one.agent, report=replace(one.agent.report, check_port=4700 + number)))
             for number, one in enumerate((met(0, eth(1)), met(1, eth(2)))) if one.agent is not None]  # fmt: skip
    assert [peer.check_port for peer in select_peers(nodes)] == [4700, 4701]


@pytest.mark.parametrize(
    ("one", "other", "addresses"),
    [
        # no other network is shared, or no better one
        ((eth(1),), (eth(2),), ("10.77.0.1", "10.77.0.2")),
        ((eth(1), fabric(1)), (eth(2),), ("10.77.0.1", "10.77.0.2")),
        ((eth(1), fabric(1, 1_000)), (eth(2), fabric(2, 1_000)), ("10.77.0.1", "10.77.0.2")),
        ((eth(1), fabric(1, 25_000)), (eth(2), fabric(2, 1_000)), ("10.77.0.1", "10.77.0.2")),
        ((eth(1), DOCKER), (eth(2), DOCKER), ("10.77.0.1", "10.77.0.2")),
        # faster, RDMA, or equal and without the operator's traffic
        ((eth(1), fabric(1, 25_000)), (eth(2), fabric(2, 25_000)), ("10.79.0.1", "10.79.0.2")),
        ((eth(1), fabric(1, 1_000, rdma=True)), (eth(2), fabric(2, 1_000, rdma=True)), ("10.79.0.1", "10.79.0.2")),
        ((eth(1), fabric(1)), (eth(2), fabric(2)), ("10.79.0.1", "10.79.0.2")),
        ((eth(1, 0), fabric(1, 0)), (eth(2, 0), fabric(2, 0)), ("10.77.0.1", "10.77.0.2")),  # no speed is known
        ((apart(eth(1)), fabric(1)), (apart(eth(2)), fabric(2)), ("10.77.0.1", "10.77.0.2")),
        # pods: every machine has its own range, with a router between
        ((eth(1, net=1), fabric(1)), (eth(2, net=2), fabric(2)), ("10.79.0.1", "10.79.0.2")),
        # slower than their first choice, between which there may be a router
        ((fabric(1),), (eth(2), fabric(2, 1_000)), ("10.79.0.1", "10.77.0.2")),
        # address families that can't connect otherwise
        ((SIX[1], eth(1)), (eth(2), fabric(2)), ("10.77.0.1", "10.77.0.2")),
        ((SIX[1], fabric(1, 10)), (eth(2), fabric(2, 10)), ("10.79.0.1", "10.79.0.2")),
    ],
)
def test_where_two_nodes_meet(one: tuple[Link, ...], other: tuple[Link, ...], addresses: tuple[str, str]) -> None:
    peers = select_peers((met(0, *one), met(1, *other)))
    assert tuple(peer.address for peer in peers) == addresses


def test_a_peer_names_its_interface() -> None:
    first, _ = select_peers((met(0, eth(1), fabric(1)), met(1, eth(2), fabric(2))))
    assert (first.node, first.address, first.port, first.interface) == (0, "10.79.0.1", 29400, "fabric0")


def test_no_address_is_chosen_before_all_are_known() -> None:
    assert select_peers((met(0, eth(1)), node(1))) == ()


def test_a_single_node_stays_where_it_is() -> None:
    assert select_peers((met(0, eth(1), fabric(1, 25_000)),))[0].address == "10.77.0.1"


LO = Link("lo", "127.0.0.1/8")
NO_WAY = "a loopback address reaches no other node"


@pytest.mark.parametrize(
    ("nodes", "where", "why"),
    [
        (
            (met(0, eth(1)), met(1, SIX[2])),
            ("digits-0 has the address 10.77.0.1 (eth0)", "digits-1 has the address fd00::2 (eth0)"),
            "one is IPv4, the other IPv6",
        ),
        (
            (met(0, eth(1)), met(1, LO)),
            ("digits-0 has the address 10.77.0.1 (eth0)", "digits-1 has the address 127.0.0.1 (lo)"),
            NO_WAY,
        ),
        (
            (met(0, LO, pod="a"), met(1, LO, pod="b")),
            ("digits-0 has the address 127.0.0.1 (lo)", "digits-1 has the address 127.0.0.1 (lo)"),
            NO_WAY,
        ),
        (
            (met(0, eth(1), machine="k"), met(1, DOCKER, machine="m"), met(2, DOCKER, machine="n")),
            ("digits-1 has the address 172.17.0.1 (docker0)", "digits-2 has the address 172.17.0.1 (docker0)"),
            "each Kubernetes node has its own interface with this address",
        ),
    ],
)
def test_networks_that_lead_nowhere(nodes: tuple[NodeFacts, ...], where: tuple[str, str], why: str) -> None:
    sentence = f"The nodes can't reach each other: {' and '.join(where)}; {why}. "
    assert find_network_mismatch(nodes) == f"{sentence}Set spec.network.interface to a network that all nodes have"


@pytest.mark.parametrize(
    "nodes",
    [
        (met(0, eth(1)), met(1, eth(2, net=99))),  # there may be a router
        (met(0, LO), met(1, LO)),  # both on this machine
        (met(0, eth(1), machine="m"), met(1, eth(1), machine="m")),  # pods with their machine's network
        (met(0, LO, pod="a"),),
        (met(0, eth(1)), node(1)),
    ],
)
def test_networks_that_may_lead_there(nodes: tuple[NodeFacts, ...]) -> None:
    assert find_network_mismatch(nodes) is None


def test_a_mismatch_ends_the_job_before_it_starts() -> None:
    current, at = facts(met(0, eth(1)), met(1, SIX[2])), START
    outcome = judge(job(), Status(), infer(job(), Status(), current, at), at)
    assert (outcome.verdict, outcome.reason, outcome.has_started) == (Verdict.FAILED, NETWORK_MISMATCH, False)
    commands = [each for each in decide(job(), current, outcome, at, 1) if isinstance(each, SendCommand)]
    assert {each.command.kind for each in commands} == {CommandKind.EXIT}
    assert compute_status(job(), Status(), current, at).message.startswith("The nodes can't reach each other: digits-0")


LINKS = st.lists(
    st.builds(
        Link,
        interface=st.sampled_from(["eth0", "eth1", "ib0"]),
        address=st.sampled_from([f"10.{net}.0.{host}/16" for net in range(3) for host in range(1, 5)]),
        speed_mbps=st.sampled_from([0, 10, 20]),
        rdma=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(LINKS, min_size=1, max_size=4))
def test_each_node_has_the_address_of_one_of_its_links_every_time(each: list[list[Link]]) -> None:
    nodes = tuple(met(number, *links) for number, links in enumerate(each))
    peers = select_peers(nodes)
    for peer, links in zip(peers, each, strict=True):
        assert (peer.interface, peer.address) in {(link.interface, link.address.split("/")[0]) for link in links}
    # the agents have changed their interface, and report it
    moved = tuple(
        replace(one, agent=replace(one.agent, report=replace(one.agent.report, address=peer.address)))
        for one, peer in zip(nodes, peers, strict=True)
        if one.agent is not None
    )
    assert select_peers(moved) == peers

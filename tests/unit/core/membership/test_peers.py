"""The choice of a network that all nodes share, from the networks that their agents report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.status.status import Status
from muster.core.actions import SendCommand
from muster.core.decide import decide
from muster.core.fact_completion import complete_facts
from muster.core.facts import NodeFacts
from muster.core.judge import judge
from muster.core.membership.peers import find_network_mismatch, select_peers
from muster.core.outcome import NETWORK_MISMATCH, Verdict
from muster_worker.contract.network import Link
from muster_worker.contract.schema import AgentPhase, CommandKind
from unit.core.builders import START, agent, compute_status, facts, job, node


def node_with_links(number: int, *links: Link, machine: str | None = None, pod: str | None = None) -> NodeFacts:
    """Return a ready node with these links, which reports the address of the first one."""
    current = agent(number, AgentPhase.READY)
    link = links[0]
    report = replace(
        current.report,
        address=link.address.split("/")[0],
        interface=link.interface,
        speed_mbps=link.speed_mbps,
        links=links,
    )
    ready = node(number, replace(current, report=report))
    return replace(ready, process=replace(ready.process, kube_node=machine, name=pod))


def eth_link(host: int, speed: int = 10_000, net: int = 77) -> Link:
    return Link("eth0", f"10.{net}.0.{host}/24", speed, to_operator=True)


def not_to_operator(link: Link) -> Link:
    """Return the same link without a connection to the operator."""
    return replace(link, to_operator=False)


def fabric_link(host: int, speed: int = 10_000, *, rdma: bool = False) -> Link:
    return Link("fabric0", f"10.79.0.{host}/16", speed, rdma)


DOCKER_LINK = Link("docker0", "172.17.0.1/16", 100_000)
IPV6_LINKS = tuple(Link("eth0", f"fd00::{host}/64", 10_000) for host in range(4))


def test_peers_have_the_port_of_each_other_for_the_network_check() -> None:
    nodes = [
        replace(entry, agent=replace(entry.agent, report=replace(entry.agent.report, check_port=4700 + number)))
        for number, entry in enumerate((node_with_links(0, eth_link(1)), node_with_links(1, eth_link(2))))
        if entry.agent is not None
    ]
    assert [peer.check_port for peer in select_peers(nodes)] == [4700, 4701]


@pytest.mark.parametrize(
    ("first", "second", "addresses"),
    [
        # They share no other network, or no better one.
        ((eth_link(1),), (eth_link(2),), ("10.77.0.1", "10.77.0.2")),
        ((eth_link(1), fabric_link(1)), (eth_link(2),), ("10.77.0.1", "10.77.0.2")),
        ((eth_link(1), fabric_link(1, 1_000)), (eth_link(2), fabric_link(2, 1_000)), ("10.77.0.1", "10.77.0.2")),
        ((eth_link(1), fabric_link(1, 25_000)), (eth_link(2), fabric_link(2, 1_000)), ("10.77.0.1", "10.77.0.2")),
        ((eth_link(1), DOCKER_LINK), (eth_link(2), DOCKER_LINK), ("10.77.0.1", "10.77.0.2")),
        # The other network is faster, has RDMA, or is as fast and has no traffic of the operator.
        ((eth_link(1), fabric_link(1, 25_000)), (eth_link(2), fabric_link(2, 25_000)), ("10.79.0.1", "10.79.0.2")),
        (
            (eth_link(1), fabric_link(1, 1_000, rdma=True)),
            (eth_link(2), fabric_link(2, 1_000, rdma=True)),
            ("10.79.0.1", "10.79.0.2"),
        ),
        ((eth_link(1), fabric_link(1)), (eth_link(2), fabric_link(2)), ("10.79.0.1", "10.79.0.2")),
        (
            (eth_link(1, 0), fabric_link(1, 0)),
            (eth_link(2, 0), fabric_link(2, 0)),
            ("10.77.0.1", "10.77.0.2"),
        ),  # The speeds are unknown.
        (
            (not_to_operator(eth_link(1)), fabric_link(1)),
            (not_to_operator(eth_link(2)), fabric_link(2)),
            ("10.77.0.1", "10.77.0.2"),
        ),
        # Pods: each machine has its own address range, and a router connects the machines.
        ((eth_link(1, net=1), fabric_link(1)), (eth_link(2, net=2), fabric_link(2)), ("10.79.0.1", "10.79.0.2")),
        # The shared network is slower than their own ones, which a router may connect.
        ((fabric_link(1),), (eth_link(2), fabric_link(2, 1_000)), ("10.79.0.1", "10.77.0.2")),
        # Different address families can't connect.
        ((IPV6_LINKS[1], eth_link(1)), (eth_link(2), fabric_link(2)), ("10.77.0.1", "10.77.0.2")),
        ((IPV6_LINKS[1], fabric_link(1, 10)), (eth_link(2), fabric_link(2, 10)), ("10.79.0.1", "10.79.0.2")),
    ],
)
def test_two_nodes_use_the_best_shared_network(
    first: tuple[Link, ...], second: tuple[Link, ...], addresses: tuple[str, str]
) -> None:
    peers = select_peers((node_with_links(0, *first), node_with_links(1, *second)))
    assert tuple(peer.address for peer in peers) == addresses


def test_a_peer_names_its_interface() -> None:
    first, _ = select_peers(
        (node_with_links(0, eth_link(1), fabric_link(1)), node_with_links(1, eth_link(2), fabric_link(2)))
    )
    assert (first.node, first.address, first.port, first.interface) == (0, "10.79.0.1", 29400, "fabric0")


def test_no_address_is_chosen_before_all_nodes_have_reported() -> None:
    assert select_peers((node_with_links(0, eth_link(1)), node(1))) == ()


def test_a_single_node_keeps_its_address() -> None:
    assert select_peers((node_with_links(0, eth_link(1), fabric_link(1, 25_000)),))[0].address == "10.77.0.1"


LOOPBACK_LINK = Link("lo", "127.0.0.1/8")
LOOPBACK_MESSAGE = "a loopback address reaches no other node"


@pytest.mark.parametrize(
    ("nodes", "places", "reason"),
    [
        (
            (node_with_links(0, eth_link(1)), node_with_links(1, IPV6_LINKS[2])),
            ("digits-0 has the address 10.77.0.1 (eth0)", "digits-1 has the address fd00::2 (eth0)"),
            "one is IPv4, the other IPv6",
        ),
        (
            (node_with_links(0, eth_link(1)), node_with_links(1, LOOPBACK_LINK)),
            ("digits-0 has the address 10.77.0.1 (eth0)", "digits-1 has the address 127.0.0.1 (lo)"),
            LOOPBACK_MESSAGE,
        ),
        (
            (node_with_links(0, LOOPBACK_LINK, pod="a"), node_with_links(1, LOOPBACK_LINK, pod="b")),
            ("digits-0 has the address 127.0.0.1 (lo)", "digits-1 has the address 127.0.0.1 (lo)"),
            LOOPBACK_MESSAGE,
        ),
        (
            (
                node_with_links(0, eth_link(1), machine="k"),
                node_with_links(1, DOCKER_LINK, machine="m"),
                node_with_links(2, DOCKER_LINK, machine="n"),
            ),
            ("digits-1 has the address 172.17.0.1 (docker0)", "digits-2 has the address 172.17.0.1 (docker0)"),
            "each Kubernetes node has its own interface with this address",
        ),
    ],
)
def test_networks_that_can_not_connect_the_nodes(
    nodes: tuple[NodeFacts, ...], places: tuple[str, str], reason: str
) -> None:
    sentence = f"The nodes can't reach each other: {' and '.join(places)}; {reason}. "
    assert find_network_mismatch(nodes) == f"{sentence}Set spec.network.interface to a network that all nodes have"


@pytest.mark.parametrize(
    "nodes",
    [
        (node_with_links(0, eth_link(1)), node_with_links(1, eth_link(2, net=99))),  # A router may connect them.
        (node_with_links(0, LOOPBACK_LINK), node_with_links(1, LOOPBACK_LINK)),  # Both are on this machine.
        (
            node_with_links(0, eth_link(1), machine="m"),
            node_with_links(1, eth_link(1), machine="m"),
        ),  # Both pods use the network of their machine.
        (node_with_links(0, LOOPBACK_LINK, pod="a"),),
        (node_with_links(0, eth_link(1)), node(1)),
    ],
)
def test_networks_that_may_connect_the_nodes(nodes: tuple[NodeFacts, ...]) -> None:
    assert find_network_mismatch(nodes) is None


def test_a_network_mismatch_fails_the_job_before_its_start() -> None:
    current, at = facts(node_with_links(0, eth_link(1)), node_with_links(1, IPV6_LINKS[2])), START
    outcome = judge(job(), Status(), complete_facts(job(), Status(), current, at), at)
    assert (outcome.verdict, outcome.reason, outcome.has_started) == (Verdict.FAILED, NETWORK_MISMATCH, False)
    commands = [action for action in decide(job(), current, outcome, at, 1) if isinstance(action, SendCommand)]
    assert {action.command.kind for action in commands} == {CommandKind.EXIT}
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
def test_the_choice_is_stable_and_each_address_belongs_to_a_link_of_its_node(links_of_nodes: list[list[Link]]) -> None:
    nodes = tuple(node_with_links(number, *links) for number, links in enumerate(links_of_nodes))
    peers = select_peers(nodes)
    for peer, links in zip(peers, links_of_nodes, strict=True):
        assert (peer.interface, peer.address) in {(link.interface, link.address.split("/")[0]) for link in links}
    # The agents have changed their interfaces and report that.
    changed_nodes = tuple(
        replace(entry, agent=replace(entry.agent, report=replace(entry.agent.report, address=peer.address)))
        for entry, peer in zip(nodes, peers, strict=True)
        if entry.agent is not None
    )
    assert select_peers(changed_nodes) == peers

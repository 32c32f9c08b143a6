"""The network in a status: each node's interface and address, and the reason."""

from dataclasses import replace

from muster.api.status.network import LinkGroup, NetworkStatus, NodeLink
from muster.api.status.status import Status
from muster.core.facts import NodeFacts
from muster.core.status.network import MAX_GROUPS, MAX_NODES, build_network_status
from muster_worker.contract.schema import AgentPhase
from unit.core.builders import START, agent, compute_status, facts, job, missing_node, node, running_node

WHY = "on the route to the operator, 10000 Mbit/s"
LONGEST = "é" * 256


def met(number: int, interface: str = "eth0", speed: int = 10_000, why: str = WHY) -> NodeFacts:
    current = agent(number, AgentPhase.READY)
    report = replace(current.report, interface=interface, speed_mbps=speed, interface_why=why)
    return node(number, replace(current, report=report))


def test_alike_nodes_are_a_group() -> None:
    nodes = (met(0), met(1, "ens5", 0, "named by the job"), met(2), missing_node(3))
    assert network_status(nodes) == NetworkStatus(
        groups=(
            LinkGroup(interface="eth0", speed_mbps=10_000, why=WHY, count=2, nodes="0,2"),
            LinkGroup(interface="ens5", why="named by the job", count=1, nodes="1"),
        ),
        nodes=(
            NodeLink(node=0, interface="eth0", address="127.0.0.1", speed_mbps=10_000),
            NodeLink(node=1, interface="ens5", address="127.0.0.2"),
            NodeLink(node=2, interface="eth0", address="127.0.0.3", speed_mbps=10_000),
        ),
    )


def test_nothing_is_said_before_an_agent_spoke() -> None:
    assert network_status((missing_node(0), node(1))) is None


def test_ten_thousand_odd_nodes_are_a_small_status() -> None:
    nodes = tuple(met(number, f"{LONGEST[:200]}{number}", number, f"{number}{LONGEST}") for number in range(10_000))
    result = build_network_status(nodes)
    assert result is not None
    assert (len(result.groups), len(result.nodes)) == (MAX_GROUPS, MAX_NODES)
    assert len(result.model_dump_json(by_alias=True).encode()) < 24 * 1024


def test_words_of_an_agent_are_cleaned() -> None:
    result = build_network_status((met(0, "eth0\x1b[31m\n", why="a\u202eb\n"),))
    assert result is not None
    assert (result.groups[0].interface, result.groups[0].why) == ("eth0", "a b")


def test_what_agents_said_stays_when_they_have_left() -> None:
    started = compute_status(job(), Status(), facts(running_node(0), running_node(1)), START)
    later = compute_status(job(), started, facts(running_node(0), replace(running_node(1), agent=None)), START + 40)
    assert later.network == started.network is not None

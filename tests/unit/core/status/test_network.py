"""The network in a status: the interface and the address of each node, and the reason for the choice."""

from dataclasses import replace

from muster.api.status.network import LinkGroup, NetworkStatus, NodeLink
from muster.api.status.status import Status
from muster.core.facts import NodeFacts
from muster.core.status.network import MAX_GROUPS, MAX_NODES, build_network_status
from muster_worker.contract.schema import AgentPhase
from unit.core.builders import START, agent, compute_status, facts, job, missing_node, node, running_node

REASON = "on the route to the operator, 10000 Mbit/s"
LONGEST_TEXT = "é" * 256


def node_on_network(number: int, interface: str = "eth0", speed: int = 10_000, reason: str = REASON) -> NodeFacts:
    current = agent(number, AgentPhase.READY)
    report = replace(current.report, interface=interface, speed_mbps=speed, interface_why=reason)
    return node(number, replace(current, report=report))


def test_nodes_with_the_same_interface_are_one_group() -> None:
    nodes = (node_on_network(0), node_on_network(1, "ens5", 0, "named by the job"), node_on_network(2), missing_node(3))
    assert build_network_status(nodes) == NetworkStatus(
        groups=(
            LinkGroup(interface="eth0", speed_mbps=10_000, message=REASON, count=2, nodes="0,2"),
            LinkGroup(interface="ens5", message="named by the job", count=1, nodes="1"),
        ),
        nodes=(
            NodeLink(node=0, interface="eth0", address="127.0.0.1", speed_mbps=10_000),
            NodeLink(node=1, interface="ens5", address="127.0.0.2"),
            NodeLink(node=2, interface="eth0", address="127.0.0.3", speed_mbps=10_000),
        ),
    )


def test_there_is_no_network_before_the_first_report() -> None:
    assert build_network_status((missing_node(0), node(1))) is None


def test_ten_thousand_different_nodes_give_a_small_status() -> None:
    nodes = tuple(
        node_on_network(number, f"{LONGEST_TEXT[:200]}{number}", number, f"{number}{LONGEST_TEXT}")
        for number in range(10_000)
    )
    result = build_network_status(nodes)
    assert result is not None
    assert (len(result.groups), len(result.nodes)) == (MAX_GROUPS, MAX_NODES)
    assert len(result.model_dump_json(by_alias=True).encode()) < 24 * 1024


def test_texts_of_an_agent_are_cleaned() -> None:
    result = build_network_status((node_on_network(0, "eth0\x1b[31m\n", reason="a\u202eb\n"),))
    assert result is not None
    assert (result.groups[0].interface, result.groups[0].message) == ("eth0", "a b")


def test_the_network_stays_in_the_status_after_agents_have_exited() -> None:
    started = compute_status(job(), Status(), facts(running_node(0), running_node(1)), START)
    later = compute_status(job(), started, facts(running_node(0), replace(running_node(1), agent=None)), START + 40)
    assert later.network == started.network is not None

"""Which nodes have a slow network, according to the measurements of all nodes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.status.network import NetworkCheck
from muster.api.status.status import Status
from muster.core.facts import NodeFacts
from muster.core.status.events import list_new_events, list_past_events
from muster.core.status.network import (
    MAX_SLOW_NODES,
    SLOW_FACTOR,
    NodeSpeed,
    build_network_status,
    find_slow_nodes,
    summarise_check,
)
from muster_worker.contract.network import NetworkFigures
from muster_worker.contract.schema import AgentPhase
from unit.core.builders import START, compute_status, facts, job, missing_node, rank, running_node, with_spec

FAST_FIGURES = NetworkFigures(9400.0, 9300.0, 40.0)


def measured_node(
    number: int, figures: NetworkFigures | None = FAST_FIGURES, phase: str = AgentPhase.RUNNING
) -> NodeFacts:
    current = running_node(number, rank(number, step=1))
    assert current.agent is not None
    report = replace(current.agent.report, figures=figures, phase=phase)
    return replace(current, agent=replace(current.agent, report=report))


def check_network(*nodes: NodeFacts) -> NetworkCheck:
    result = summarise_check(nodes)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("figures", "slow_nodes"),
    [
        (NetworkFigures(930.0, 9400.0, 40.0), [2]),  # It sends slowly.
        (NetworkFigures(9400.0, 930.0, 40.0), [2]),  # It receives slowly.
        (NetworkFigures(940.0, 9400.0, 40.0), []),  # It is less than 10 times slower.
        (NetworkFigures(0.0, 0.0, 40.0), [2]),
        (NetworkFigures(9400.0, 9400.0, 1000.0), [2]),
        (NetworkFigures(9400.0, 9400.0, 900.0), []),  # This is normal on a busy machine.
        (NetworkFigures(94000.0, 94000.0, 4.0), []),
        (NetworkFigures(9400.0, None, 40.0), []),
    ],
)
def test_a_node_that_is_ten_times_slower_than_the_median_is_slow(
    figures: NetworkFigures, slow_nodes: list[int]
) -> None:
    result = check_network(measured_node(0), measured_node(1), measured_node(2, figures), measured_node(3))
    assert [entry.node for entry in result.slow] == slow_nodes
    assert result.slow_count == len(result.slow)
    assert result.measured == 4


def test_the_message_of_the_check() -> None:
    result = check_network(measured_node(0), measured_node(1), measured_node(2, NetworkFigures(90.0, 95.0, 2100.0)))
    assert result.message == (
        "digits-2 (90 Mbit/s, round trip 2100 us) is 10 times slower than the median node: "
        "the median is 9300 Mbit/s, 40 us"
    )
    no_slow_node = "No node is 10 times slower than the others: the median is 9300 Mbit/s, 40 us"
    assert check_network(measured_node(0), measured_node(1)).message == no_slow_node
    incomplete = NetworkFigures(9400.0, 9300.0, 40.0, "node 2 at 10.0.0.3 can't be measured: Connection refused")
    assert (
        check_network(measured_node(0), measured_node(1, incomplete), measured_node(2)).message
        == f"{no_slow_node}; digits-1: {incomplete.problem}"
    )
    unmeasured = check_network(
        measured_node(0, NetworkFigures(problem="timed out\x1b")), measured_node(1, NetworkFigures(problem="b"))
    )
    assert (
        unmeasured.message
        == "No node could be measured; digits-0: timed out, and 1 more node could not be measured completely"
    )
    assert (unmeasured.measured, unmeasured.median_bandwidth_mbps) == (0, None)


def test_neither_of_two_nodes_is_slow() -> None:
    assert check_network(measured_node(0), measured_node(1, NetworkFigures(1.0, 1.0, 90_000.0))).slow == ()


def test_there_is_no_result_before_all_have_reported() -> None:
    assert summarise_check((measured_node(0), measured_node(1, None))) is None
    assert summarise_check((running_node(0), running_node(1))) is None
    assert summarise_check((missing_node(0),)) is None
    # A node that was stopped during its check sends no measurement.
    assert check_network(measured_node(0), measured_node(1, None, AgentPhase.ENDED)).measured == 1


def test_a_nodes_figures_are_in_the_status_before_those_of_the_others() -> None:
    result = build_network_status((measured_node(0), measured_node(1, None)))
    assert result is not None
    figures = [(entry.bandwidth_mbps, entry.round_trip_microseconds) for entry in result.nodes]
    assert (figures, result.check) == ([(9300.0, 40.0), (None, None)], None)


def test_ten_thousand_nodes_give_a_small_status() -> None:
    slow = [measured_node(number, NetworkFigures(1.0, 1.0, 90_000.0, "p" * 256)) for number in range(4000)]
    result = build_network_status((*slow, *(measured_node(number) for number in range(4000, 10_000))))
    assert result is not None
    assert result.check is not None
    assert (result.check.slow_count, len(result.check.slow)) == (4000, MAX_SLOW_NODES)
    assert len(result.model_dump_json(by_alias=True).encode()) < 12 * 1024


def test_a_slow_node_causes_one_event_and_does_not_stop_the_job() -> None:
    slow = facts(measured_node(0), measured_node(1), measured_node(2, NetworkFigures(90.0, 95.0, 2100.0)))
    a_job = job(3, 1)
    network = a_job.spec.network.model_copy(update={"check": True})
    a_job = with_spec(a_job, network=network)
    before = compute_status(a_job, Status(), facts(*(measured_node(number, None) for number in range(3))), START)
    status = compute_status(a_job, before, slow, START + 5)
    assert (status.phase, status.message) == ("Running", "3 of 3 ranks run; step 1; slow network: digits-2")
    slow_network_events = [event for event in list_new_events(before, status) if event.reason == "SlowNetwork"]
    assert [event.type for event in slow_network_events] == ["Warning"]
    assert slow_network_events[0].message.startswith("digits-2 (90 Mbit/s")
    # Later statuses repeat the event unchanged.
    assert slow_network_events[0] in list_past_events(status)
    later = compute_status(a_job, status, slow, START + 9)
    assert [event for event in list_new_events(status, later) if event.reason == "SlowNetwork"] == []


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=40))
def test_at_most_half_of_the_nodes_are_slow(mbps: list[float]) -> None:
    speeds = [NodeSpeed(number, f"digits-{number}", value, 40.0) for number, value in enumerate(mbps)]
    slow = find_slow_nodes(speeds)
    median = sorted(mbps)[len(mbps) // 2]
    assert all(entry.mbps * SLOW_FACTOR <= median for entry in slow)
    assert len(slow) <= len(mbps) // 2
    assert [entry.mbps for entry in slow] == sorted(entry.mbps for entry in slow)

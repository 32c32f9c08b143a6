"""The slow nodes, from the measurements of all nodes."""

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
from unit.core.builders import START, compute_status, facts, job, missing_node, rank, running_node

FAST = NetworkFigures(9400.0, 9300.0, 40.0)


def measured(number: int, figures: NetworkFigures | None = FAST, phase: str = AgentPhase.RUNNING) -> NodeFacts:
    current = running_node(number, rank(number, step=1))
    assert current.agent is not None
    report = replace(current.agent.report, figures=figures, phase=phase)
    return replace(current, agent=replace(current.agent, report=report))


def checked(*nodes: NodeFacts) -> NetworkCheck:
    result = summarise_check(nodes)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        (NetworkFigures(930.0, 9400.0, 40.0), [2]),  # it sends slowly
        (NetworkFigures(9400.0, 930.0, 40.0), [2]),  # it receives slowly
        (NetworkFigures(940.0, 9400.0, 40.0), []),  # not 10 times
        (NetworkFigures(0.0, 0.0, 40.0), [2]),
        (NetworkFigures(9400.0, 9400.0, 1000.0), [2]),
        (NetworkFigures(9400.0, 9400.0, 900.0), []),  # normal on a busy machine
        (NetworkFigures(94000.0, 94000.0, 4.0), []),
        (NetworkFigures(9400.0, None, 40.0), []),
    ],
)
def test_ten_times_slower_than_the_median_is_slow(figures: NetworkFigures, named: list[int]) -> None:
    result = checked(measured(0), measured(1), measured(2, figures), measured(3))
    assert [one.node for one in result.slow] == named
    assert result.slow_count == len(result.slow)
    assert result.measured == 4


def test_what_is_said() -> None:
    result = checked(measured(0), measured(1), measured(2, NetworkFigures(90.0, 95.0, 2100.0)))
    assert result.message == (
        "digits-2 (90 Mbit/s, round trip 2100 us) is 10 times slower than the median node: "
        "the median is 9300 Mbit/s, 40 us"
    )
    alike = "No node is 10 times slower than the others: the median is 9300 Mbit/s, 40 us"
    assert checked(measured(0), measured(1)).message == alike
    gap = NetworkFigures(9400.0, 9300.0, 40.0, "node 2 at 10.0.0.3 can't be measured: Connection refused")
    assert checked(measured(0), measured(1, gap), measured(2)).message == f"{alike}; digits-1: {gap.problem}"
    nothing = checked(measured(0, NetworkFigures(problem="timed out\x1b")), measured(1, NetworkFigures(problem="b")))
    assert (
        nothing.message
        == "No node could be measured; digits-0: timed out, and 1 more node could not be measured completely"
    )
    assert (nothing.measured, nothing.median_bandwidth_mbps) == (0, None)


def test_of_two_nodes_none_is_the_slow_one() -> None:
    assert checked(measured(0), measured(1, NetworkFigures(1.0, 1.0, 90_000.0))).slow == ()


def test_there_is_no_result_before_all_have_reported() -> None:
    assert summarise_check((measured(0), measured(1, None))) is None
    assert summarise_check((running_node(0), running_node(1))) is None
    assert summarise_check((missing_node(0),)) is None
    # a node that was stopped before the end of its check reports nothing any more
    assert checked(measured(0), measured(1, None, AgentPhase.ENDED)).measured == 1


def test_a_node_has_its_figures_before_the_others() -> None:
    result = build_network_status((measured(0), measured(1, None)))
    assert result is not None
    value = [(one.bandwidth_mbps, one.round_trip_microseconds) for one in result.nodes]
    assert (value, result.check) == ([(9300.0, 40.0), (None, None)], None)


def test_ten_thousand_nodes_are_a_small_status() -> None:
    slow = [measured(number, NetworkFigures(1.0, 1.0, 90_000.0, "p" * 256)) for number in range(4000)]
    result = build_network_status((*slow, *(measured(number) for number in range(4000, 10_000))))
    assert result is not None
    assert result.check is not None
    assert (result.check.slow_count, len(result.check.slow)) == (4000, MAX_SLOW_NODES)
    assert len(result.model_dump_json(by_alias=True).encode()) < 12 * 1024


def test_a_slow_node_is_one_event_and_the_job_goes_on() -> None:
    slow = facts(measured(0), measured(1), measured(2, NetworkFigures(90.0, 95.0, 2100.0)))
    asking = job(3, 1)
    network = asking.spec.network.model_copy(update={"check": True})
    asking = asking.model_copy(update={"spec": asking.spec.model_copy(update={"network": network})})
    before = compute_status(asking, Status(), facts(*(measured(number, None) for number in range(3))), START)
    status = compute_status(asking, before, slow, START + 5)
    assert (status.phase, status.message) == ("Running", "3 of 3 ranks run; step 1; slow network: digits-2")
    is_told = [note for note in list_new_events(before, status) if note.reason == "SlowNetwork"]
    assert [note.type for note in is_told] == ["Warning"]
    assert is_told[0].message.startswith("digits-2 (90 Mbit/s")
    # a repeated report yields the same result
    assert is_told[0] in past_events(status)
    later = compute_status(asking, status, slow, START + 9)
    assert [note for note in new_events(status, later) if note.reason == "SlowNetwork"] == []


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=40))
def test_fewer_than_half_are_slow(mbps: list[float]) -> None:
    speeds = [NodeSpeed(number, f"digits-{number}", value, 40.0) for number, value in enumerate(mbps)]
    slow = find_slow_nodes(speeds)
    middle = sorted(mbps)[len(mbps) // 2]
    assert all(one.mbps * SLOW_FACTOR <= middle for one in slow)
    assert len(slow) <= len(mbps) // 2
    assert [one.mbps for one in slow] == sorted(one.mbps for one in slow)

"""The pairs of nodes in the network check, and each node's result."""

import pytest

from muster_worker.contract.network import NetworkFigures
from muster_worker.contract.schema import Peer
from muster_worker.network.check_results import MAX_PROBLEM_CHARS, Measurement, assign, format_figures, summarize


def peers(count: int) -> tuple[Peer, ...]:
    return tuple(Peer(number, f"10.0.0.{number + 1}", 4000, "eth0", 5000 + number) for number in range(count))


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_who_is_sent_to_waits_for_it(count: int) -> None:
    result = [assign(number, peers(count), "uid", 1) for number in range(count)]
    sending = {(one.own.node, target.node) for one in result if one for target in one.targets}
    awaited = {(source, one.own.node) for one in result if one for source in one.sources}
    assert sending == awaited
    assert len(sending) == count * min(2, count - 1)
    assert all(source != target for source, target in sending)
    assert len({one.key for one in result if one}) == 1


def test_no_peer_to_measure_with() -> None:
    assert assign(0, peers(1), "uid", 1) is None
    assert assign(0, (*peers(1), Peer(1, "10.0.0.2", 4000)), "uid", 1) is None


def test_another_start_has_another_key() -> None:
    one, other = assign(0, peers(2), "uid", 1), assign(0, peers(2), "uid", 2)
    assert one is not None
    assert other is not None
    assert one.key != other.key


def test_the_better_partner_counts() -> None:
    result = summarize({1: Measurement(90.0, 800.0), 2: Measurement(9000.0, 40.0)}, {3: 8000.0, 2: 70.0}, (), ())
    assert result == NetworkFigures(9000.0, 8000.0, 40.0)
    assert format_figures(result) == "network check: 9000 Mbit/s sent, round trip 40 us, 8000 Mbit/s received"


def test_missing_figures_are_reported() -> None:
    result = summarize({}, {}, ("node 1 at 10.0.0.2 can't be measured: timed out",), (1, 2))
    assert result == NetworkFigures(
        problem="node 1 at 10.0.0.2 can't be measured: timed out; no data from node 1 and 2"
    )
    assert format_figures(result) == f"network check: {result.problem}"
    assert len(summarize({}, {}, ("x" * 999,), ()).problem or "") == MAX_PROBLEM_CHARS

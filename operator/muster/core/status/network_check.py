"""The result of the network check for all nodes: the median, and nodes far from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from muster.api.amounts import amount
from muster.api.status.status import NetworkCheck, SlowNode
from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster_worker.contract.schema import AgentPhase, NetworkFigures

SLOW_FACTOR = 10
"""A node that is so many times slower than the median is not slow by chance, and slows down every collective."""

LEAST_NODES = 3
"""With two nodes, a slow link belongs to both."""

LEAST_ROUND_TRIP_US = 1000.0
"""A shorter round trip may be due to a busy CPU, not the network."""

MAX_SLOW = 16
"""Every watcher gets the whole status with every change."""

_MAX_NAMED = 4
_MAX_PROBLEM_CHARS = 128


@dataclass(frozen=True)
class Speed:
    """A node's figures: the lower of sending and receiving, in Mbit/s, and its fastest round trip."""

    node: int
    name: str
    mbps: float
    round_trip_us: float


def check_of(nodes: Sequence[NodeFacts]) -> NetworkCheck | None:
    """The result; None until every reporting node has one, and without network.check."""
    reporting = [(node, agent.report) for node in nodes if (agent := node.current_agent) is not None]
    value = [(node, report.figures) for node, report in reporting if report.figures is not None]
    # A node that ended before its measurement will not report one.
    if not value or any(report.figures is None and report.phase != AgentPhase.ENDED for _, report in reporting):
        return None
    speeds = [speed for node, figures in value if (speed := speed_of(node, figures)) is not None]
    slow = slow_ones(speeds)
    typical = Speed(-1, "", _median([one.mbps for one in speeds]), _median([one.round_trip_us for one in speeds]))
    problems = [(node, figures.problem) for node, figures in value if figures.problem is not None]
    return NetworkCheck(
        measured=len(speeds),
        median_bandwidth_mbps=typical.mbps if speeds else None,
        median_round_trip_microseconds=typical.round_trip_us if speeds else None,
        slow_count=len(slow),
        slow=tuple(
            SlowNode(
                node=one.node,
                name=one.name,
                bandwidth_mbps=one.mbps,
                round_trip_microseconds=one.round_trip_us,
            )
            for one in slow[:MAX_SLOW]
        ),
        message="; ".join([_verdict(speeds, slow, typical), *_gaps(problems)]),
    )


def speed_of(node: NodeFacts, figures: NetworkFigures) -> Speed | None:
    """The node's speed; None if nothing was measured."""
    ways = [way for way in (figures.sent_mbps, figures.received_mbps) if way is not None]
    if not ways or figures.round_trip_us is None:
        return None
    return Speed(node.node, node.name, min(ways), figures.round_trip_us)


def slow_ones(speeds: Sequence[Speed]) -> tuple[Speed, ...]:
    """The nodes that are `SLOW_FACTOR` times slower than the median, slowest first."""
    if len(speeds) < LEAST_NODES:
        return ()
    mbps = median(one.mbps for one in speeds)
    round_trip = max(LEAST_ROUND_TRIP_US, SLOW_FACTOR * median(one.round_trip_us for one in speeds))
    result = [one for one in speeds if one.mbps * SLOW_FACTOR <= mbps > 0 or one.round_trip_us >= round_trip]
    return tuple(sorted(result, key=lambda one: (one.mbps, -one.round_trip_us, one.node)))


def _median(values: Sequence[float]) -> float:
    return round(median(values), 1) if values else 0.0


def _verdict(speeds: Sequence[Speed], slow: Sequence[Speed], typical: Speed) -> str:
    middle = f"the median is {typical.mbps:.0f} Mbit/s, {typical.round_trip_us:.0f} us"
    if not speeds:
        return "No node could be measured"
    if not slow:
        return f"No node is {SLOW_FACTOR} times slower than the others: {middle}"
    named = [f"{one.name} ({one.mbps:.0f} Mbit/s, round trip {one.round_trip_us:.0f} us)" for one in slow[:_MAX_NAMED]]
    more = f" and {len(slow) - _MAX_NAMED} more" if len(slow) > _MAX_NAMED else ""
    is_or_are = "is" if len(slow) == 1 else "are"
    return f"{', '.join(named)}{more} {is_or_are} {SLOW_FACTOR} times slower than the median node: {middle}"


def _gaps(problems: Sequence[tuple[NodeFacts, str]]) -> list[str]:
    if not problems:
        return []
    node, problem = problems[0]
    more = (
        f", and {amount(len(problems) - 1, 'more node')} could not be measured completely" if len(problems) > 1 else ""
    )
    return [f"{node.name}: {clean(problem, limit=_MAX_PROBLEM_CHARS)}{more}"]

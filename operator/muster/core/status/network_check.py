"""The result of the network check for all nodes: the median, and nodes far from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from muster.api.plurals import pluralize
from muster.api.status.network import NetworkCheck, SlowNode
from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster_worker.contract.schema import AgentPhase, NetworkFigures

SLOW_FACTOR = 10
"""A node that is so many times slower than the median is not slow by chance, and slows down every collective."""

LEAST_NODES = 3
"""With two nodes, the check can't tell which one is slow."""

LEAST_ROUND_TRIP_US = 1000.0
"""A shorter round trip may be slow because of a busy CPU."""

MAX_SLOW = 16
"""Every watcher receives the whole status with every change."""

_MAX_NAMED = 4
_MAX_PROBLEM_CHARS = 128


@dataclass(frozen=True)
class Speed:
    """A node's figures: the lower of sending and receiving, in Mbit/s, and its fastest round trip."""

    node: int
    name: str
    mbps: float
    round_trip_us: float


def summarise_check(nodes: Sequence[NodeFacts]) -> NetworkCheck | None:
    """The result; None without network.check, or before every reporting node has measured."""
    reporting = [(node, agent.report) for node in nodes if (agent := node.current_agent) is not None]
    measured = [(node, report.figures) for node, report in reporting if report.figures is not None]
    # A node that ended before its measurement will not report one.
    if not measured or any(report.figures is None and report.phase != AgentPhase.ENDED for _, report in reporting):
        return None
    speeds = [speed for node, figures in measured if (speed := measured_speed(node, figures)) is not None]
    slow = find_slow_nodes(speeds)
    median_speed = Speed(
        -1, "", _median([speed.mbps for speed in speeds]), _median([speed.round_trip_us for speed in speeds])
    )
    problems = [(node, figures.problem) for node, figures in measured if figures.problem is not None]
    return NetworkCheck(
        measured=len(speeds),
        median_bandwidth_mbps=median_speed.mbps if speeds else None,
        median_round_trip_microseconds=median_speed.round_trip_us if speeds else None,
        slow_count=len(slow),
        slow=tuple(
            SlowNode(
                node=speed.node,
                name=speed.name,
                bandwidth_mbps=speed.mbps,
                round_trip_microseconds=speed.round_trip_us,
            )
            for speed in slow[:MAX_SLOW]
        ),
        message="; ".join([_describe_result(speeds, slow, median_speed), *_describe_problems(problems)]),
    )


def measured_speed(node: NodeFacts, figures: NetworkFigures) -> Speed | None:
    """The node's speed; None if nothing was measured."""
    directions = [mbps for mbps in (figures.sent_mbps, figures.received_mbps) if mbps is not None]
    if not directions or figures.round_trip_us is None:
        return None
    return Speed(node.node, node.name, min(directions), figures.round_trip_us)


def find_slow_nodes(speeds: Sequence[Speed]) -> tuple[Speed, ...]:
    """The nodes that are `SLOW_FACTOR` times slower than the median, slowest first."""
    if len(speeds) < LEAST_NODES:
        return ()
    mbps = median(speed.mbps for speed in speeds)
    round_trip = max(LEAST_ROUND_TRIP_US, SLOW_FACTOR * median(speed.round_trip_us for speed in speeds))
    result = [speed for speed in speeds if speed.mbps * SLOW_FACTOR <= mbps > 0 or speed.round_trip_us >= round_trip]
    return tuple(sorted(result, key=lambda speed: (speed.mbps, -speed.round_trip_us, speed.node)))


def _median(values: Sequence[float]) -> float:
    return round(median(values), 1) if values else 0.0


def _describe_result(speeds: Sequence[Speed], slow: Sequence[Speed], median_speed: Speed) -> str:
    median_text = f"the median is {median_speed.mbps:.0f} Mbit/s, {median_speed.round_trip_us:.0f} us"
    if not speeds:
        return "No node could be measured"
    if not slow:
        return f"No node is {SLOW_FACTOR} times slower than the others: {median_text}"
    named = [
        f"{speed.name} ({speed.mbps:.0f} Mbit/s, round trip {speed.round_trip_us:.0f} us)"
        for speed in slow[:_MAX_NAMED]
    ]
    more = f" and {len(slow) - _MAX_NAMED} more" if len(slow) > _MAX_NAMED else ""
    is_or_are = "is" if len(slow) == 1 else "are"
    return f"{', '.join(named)}{more} {is_or_are} {SLOW_FACTOR} times slower than the median node: {median_text}"


def _describe_problems(problems: Sequence[tuple[NodeFacts, str]]) -> list[str]:
    if not problems:
        return []
    node, problem = problems[0]
    more = (
        f", and {pluralize(len(problems) - 1, 'more node')} could not be measured completely"
        if len(problems) > 1
        else ""
    )
    return [f"{node.name}: {clean(problem, limit=_MAX_PROBLEM_CHARS)}{more}"]

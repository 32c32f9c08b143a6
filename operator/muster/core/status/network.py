"""The status of the nodes' networks, and the result of the network check.

Nodes with the same interface form a group. The check compares the speed of each node with the median.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from muster.api.plurals import pluralize
from muster.api.status.network import LinkGroup, NetworkCheck, NetworkStatus, NodeLink, SlowNode
from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import sanitize_line
from muster.core.status.rank_ranges import format_ranges
from muster_worker.contract.network import NetworkFigures
from muster_worker.contract.schema import AgentPhase, Report

MAX_GROUPS = 16
"""The maximum number of groups in the status. Most jobs have only a few groups."""

MAX_NODES = 32
"""The maximum number of nodes in the status, because each watch receives the whole status at every change."""

SLOW_FACTOR = 10
"""A node that is at least this many times slower than the median is not slow by chance, and delays every collective."""

MIN_NODES = 3
"""With two nodes, the check can't tell which one is slow."""

MIN_SLOW_ROUND_TRIP_US = 1000.0
"""A node with a shorter round trip is not slow, because a busy CPU can cause such a delay."""

MAX_SLOW_NODES = 16
"""The maximum number of slow nodes in the status."""

_MAX_NAMED_NODES = 4
_MAX_PROBLEM_CHARS = 128
_MAX_NAME_CHARS = 64
_MAX_REASON_CHARS = 256

_GroupKey = tuple[str, int, str]


@dataclass(frozen=True)
class NodeSpeed:
    """A node's speed: the lower of its send and receive bandwidths in Mbit/s, and its shortest round trip."""

    node: int
    name: str
    mbps: float
    round_trip_us: float
    pod: str | None = None


def build_network_status(nodes: tuple[NodeFacts, ...]) -> NetworkStatus | None:
    """Return the network status from the agents' reports; None without reports."""
    reports = [(node, agent.report) for node in nodes if (agent := node.current_agent) is not None]
    reported = [(node, report) for node, report in reports if report.address is not None]
    if not reported:
        return None
    groups: dict[_GroupKey, list[int]] = {}
    for node, report in reported:
        key = (report.interface or "", report.speed_mbps, report.interface_why or "")
        groups.setdefault(key, []).append(node.node)
    largest = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1][0]))
    return NetworkStatus(
        groups=tuple(_make_group(key, members) for key, members in largest[:MAX_GROUPS]),
        nodes=tuple(_make_node_link(node, report) for node, report in reported[:MAX_NODES]),
        check=summarise_check(nodes),
    )


def _make_group(key: _GroupKey, members: list[int]) -> LinkGroup:
    interface, speed, reason = key
    return LinkGroup(
        interface=sanitize_line(interface, limit=_MAX_NAME_CHARS),
        speed_mbps=speed or None,
        message=sanitize_line(reason, limit=_MAX_REASON_CHARS),
        count=len(members),
        nodes=format_ranges(members),
    )


def _make_node_link(node: NodeFacts, report: Report) -> NodeLink:
    speed = None if report.figures is None else read_speed(node, report.figures)
    return NodeLink(
        node=node.node,
        interface=sanitize_line(report.interface or "", limit=_MAX_NAME_CHARS),
        address=report.address or "",
        speed_mbps=report.speed_mbps or None,
        bandwidth_mbps=None if speed is None else speed.mbps,
        round_trip_microseconds=None if speed is None else speed.round_trip_us,
    )


def summarise_check(nodes: Sequence[NodeFacts]) -> NetworkCheck | None:
    """Return the result for all nodes; None without network.check, or before every reporting node has a result."""
    reporting = [(node, agent.report) for node in nodes if (agent := node.current_agent) is not None]
    results = [(node, report.figures) for node, report in reporting if report.figures is not None]
    # A node that ended before its measurement will not report one.
    if not results or any(report.figures is None and report.phase != AgentPhase.ENDED for _, report in reporting):
        return None
    speeds = [speed for node, figures in results if (speed := read_speed(node, figures)) is not None]
    slow = find_slow_nodes(speeds)
    median_speed = NodeSpeed(
        -1,
        "",
        _round_median([speed.mbps for speed in speeds]),
        _round_median([speed.round_trip_us for speed in speeds]),
    )
    problems = [(node, figures.problem) for node, figures in results if figures.problem is not None]
    return NetworkCheck(
        measured=len(speeds),
        median_bandwidth_mbps=median_speed.mbps if speeds else None,
        median_round_trip_microseconds=median_speed.round_trip_us if speeds else None,
        slow_count=len(slow),
        slow=tuple(
            SlowNode(
                node=speed.node,
                pod=speed.pod,
                bandwidth_mbps=speed.mbps,
                round_trip_microseconds=speed.round_trip_us,
            )
            for speed in slow[:MAX_SLOW_NODES]
        ),
        message="; ".join([_describe_result(speeds, slow, median_speed), *_describe_problems(problems)]),
    )


def read_speed(node: NodeFacts, figures: NetworkFigures) -> NodeSpeed | None:
    """Return the node's speed; None without a complete measurement."""
    directions = [mbps for mbps in (figures.sent_mbps, figures.received_mbps) if mbps is not None]
    if not directions or figures.round_trip_us is None:
        return None
    return NodeSpeed(node.node, node.name, min(directions), figures.round_trip_us, node.process.name)


def find_slow_nodes(speeds: Sequence[NodeSpeed]) -> tuple[NodeSpeed, ...]:
    """Return the nodes that are `SLOW_FACTOR` times slower than the median, slowest first."""
    if len(speeds) < MIN_NODES:
        return ()
    mbps = median(speed.mbps for speed in speeds)
    round_trip = max(MIN_SLOW_ROUND_TRIP_US, SLOW_FACTOR * median(speed.round_trip_us for speed in speeds))
    result = [speed for speed in speeds if speed.mbps * SLOW_FACTOR <= mbps > 0 or speed.round_trip_us >= round_trip]
    return tuple(sorted(result, key=lambda speed: (speed.mbps, -speed.round_trip_us, speed.node)))


def _round_median(values: Sequence[float]) -> float:
    return round(median(values), 1) if values else 0.0


def _describe_result(speeds: Sequence[NodeSpeed], slow: Sequence[NodeSpeed], median_speed: NodeSpeed) -> str:
    median_text = f"the median is {median_speed.mbps:.0f} Mbit/s, {median_speed.round_trip_us:.0f} us"
    if not speeds:
        return "No node could be measured"
    if not slow:
        return f"No node is {SLOW_FACTOR} times slower than the others: {median_text}"
    descriptions = [
        f"{speed.name} ({speed.mbps:.0f} Mbit/s, round trip {speed.round_trip_us:.0f} us)"
        for speed in slow[:_MAX_NAMED_NODES]
    ]
    more = f" and {len(slow) - _MAX_NAMED_NODES} more" if len(slow) > _MAX_NAMED_NODES else ""
    is_or_are = "is" if len(slow) == 1 else "are"
    return f"{', '.join(descriptions)}{more} {is_or_are} {SLOW_FACTOR} times slower than the median node: {median_text}"


def _describe_problems(problems: Sequence[tuple[NodeFacts, str]]) -> list[str]:
    if not problems:
        return []
    node, problem = problems[0]
    more = (
        f", and {pluralize(len(problems) - 1, 'more node')} could not be measured completely"
        if len(problems) > 1
        else ""
    )
    return [f"{node.name}: {sanitize_line(problem, limit=_MAX_PROBLEM_CHARS)}{more}"]

"""The interface of each node, and why: all nodes in groups, and the first ones individually."""

from muster.api.status.status import LinkGroup, NetworkStatus, NodeLink
from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster.core.status.network_check import check_of, speed_of
from muster.core.status.ranges import ranges
from muster_worker.contract.schema import Report

MAX_GROUPS = 16
"""A few kinds of Kubernetes nodes make a few groups; with many kinds, the rest is left out."""

MAX_NODES = 32
"""Every watcher gets the whole status with every change."""

_MAX_NAME_CHARS = 64
_MAX_WHY_CHARS = 256

_Alike = tuple[str, int, str]


def network_of(nodes: tuple[NodeFacts, ...]) -> NetworkStatus | None:
    """The agents' reports about their network; None while there are none."""
    reports = [(node, agent.report) for node in nodes if (agent := node.current_agent) is not None]
    reported = [(node, report) for node, report in reports if report.address is not None]
    if not reported:
        return None
    groups: dict[_Alike, list[int]] = {}
    for node, report in reported:
        alike = (report.interface or "", report.speed_mbps, report.interface_why or "")
        groups.setdefault(alike, []).append(node.node)
    largest = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1][0]))
    return NetworkStatus(
        groups=tuple(_group(alike, members) for alike, members in largest[:MAX_GROUPS]),
        nodes=tuple(_node(node, report) for node, report in reported[:MAX_NODES]),
        check=check_of(nodes),
    )


def _group(alike: _Alike, members: list[int]) -> LinkGroup:
    interface, speed, why = alike
    return LinkGroup(
        interface=clean(interface, limit=_MAX_NAME_CHARS),
        speed_mbps=speed or None,
        why=clean(why, limit=_MAX_WHY_CHARS),
        count=len(members),
        nodes=ranges(members),
    )


def _node(node: NodeFacts, report: Report) -> NodeLink:
    speed = None if report.figures is None else speed_of(node, report.figures)
    return NodeLink(
        node=node.node,
        interface=clean(report.interface or "", limit=_MAX_NAME_CHARS),
        address=report.address or "",
        speed_mbps=report.speed_mbps or None,
        bandwidth_mbps=None if speed is None else speed.mbps,
        round_trip_microseconds=None if speed is None else speed.round_trip_us,
    )

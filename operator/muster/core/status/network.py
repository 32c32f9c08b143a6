"""The status of the nodes' networks: groups of nodes with the same interface, and the first nodes individually."""

from muster.api.status.network import LinkGroup, NetworkStatus, NodeLink
from muster.core.facts import NodeFacts
from muster.core.failure.rank_output import clean
from muster.core.status.network_check import measured_speed, summarise_check
from muster.core.status.ranges import ranges
from muster_worker.contract.schema import Report

MAX_GROUPS = 16
"""Similar machines form a few groups; the status leaves out the rest."""

MAX_NODES = 32
"""Every watcher receives the whole status with every change."""

_MAX_NAME_CHARS = 64
_MAX_WHY_CHARS = 256

_GroupKey = tuple[str, int, str]


def network_status(nodes: tuple[NodeFacts, ...]) -> NetworkStatus | None:
    """The network status from the agents' reports; None without reports."""
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
        groups=tuple(_group(key, members) for key, members in largest[:MAX_GROUPS]),
        nodes=tuple(_node(node, report) for node, report in reported[:MAX_NODES]),
        check=summarise_check(nodes),
    )


def _group(key: _GroupKey, members: list[int]) -> LinkGroup:
    interface, speed, why = key
    return LinkGroup(
        interface=clean(interface, limit=_MAX_NAME_CHARS),
        speed_mbps=speed or None,
        why=clean(why, limit=_MAX_WHY_CHARS),
        count=len(members),
        nodes=ranges(members),
    )


def _node(node: NodeFacts, report: Report) -> NodeLink:
    speed = None if report.figures is None else measured_speed(node, report.figures)
    return NodeLink(
        node=node.node,
        interface=clean(report.interface or "", limit=_MAX_NAME_CHARS),
        address=report.address or "",
        speed_mbps=report.speed_mbps or None,
        bandwidth_mbps=None if speed is None else speed.mbps,
        round_trip_microseconds=None if speed is None else speed.round_trip_us,
    )

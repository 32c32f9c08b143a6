"""The nodes of a job as rows: pods, Kubernetes nodes, and networks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.plurals import pluralize
from muster.api.status.network import NodeLink
from muster.api.status.status import Status
from muster.cli.board.observed_job import read_procs_per_node
from muster.cli.board.printable import replace_unprintable
from muster.cli.board.view import read_members
from muster.objects.kubernetes.containers import Terminated, Waiting
from muster.objects.kubernetes.pods import PodView

NODE_TITLES = ("NODE", "RANKS", "POD", "STATE", "KUBERNETES NODE", "NETWORK")

MAX_NODES = 32
"""The maximum number of pods in the table: first those that don't run. `muster ranks` shows all nodes."""


def list_node_rows(status: Status, pods: Sequence[PodView]) -> list[tuple[str, ...]]:
    """Return a row for each pod, in the order of nodes."""
    listed = sorted(sorted(pods, key=_is_running)[:MAX_NODES], key=lambda pod: (pod.node, pod.replacement))
    links = {} if status.network is None else {link.node: link for link in status.network.nodes}
    rows: list[tuple[str, ...]] = [
        (
            str(pod.node),
            _format_ranks(status, pod.node),
            pod.name,
            _format_state(pod),
            replace_unprintable(pod.kube_node) or "-",
            _format_link(links.get(pod.node)),
        )
        for pod in listed
    ]
    if len(pods) > len(listed):
        rows.append(("", "", f"{pluralize(len(pods) - len(listed), 'more pod')}", "Running", "", ""))
    return rows


def _is_running(pod: PodView) -> bool:
    return pod.phase == "Running" and pod.deletion_requested_at is None


def _format_state(pod: PodView) -> str:
    """Return the pod's state as the column STATUS of kubectl: a container's reason, or else the phase."""
    if pod.deletion_requested_at is not None:
        return "Terminating"
    state = pod.trainer.state
    if isinstance(state, Terminated):
        return f"{replace_unprintable(state.reason) or 'Terminated'} (exit code {state.exit_code})"
    if isinstance(state, Waiting) and state.reason:
        return replace_unprintable(state.reason)
    scheduled = pod.find_condition("PodScheduled")
    if scheduled is not None and not scheduled.is_true and scheduled.reason:
        return replace_unprintable(scheduled.reason)
    return replace_unprintable(pod.reason or pod.phase) or "-"


def _format_ranks(status: Status, node: int) -> str:
    """Return the ranks of a node; "-" for a node that runs none, such as a spare."""
    members = read_members(status)
    if members and node not in members:
        return "-"
    node_rank = members.index(node) if members else node
    count = read_procs_per_node(status)
    first, last = node_rank * count, node_rank * count + count - 1
    if status.ranks is None or last >= status.ranks.world:
        return "-"
    return str(first) if count == 1 else f"{first}-{last}"


def _format_link(link: NodeLink | None) -> str:
    if link is None:
        return "-"
    speed = "" if link.speed_mbps is None else f", {link.speed_mbps:,} Mbit/s"
    return f"{link.interface} {link.address}{speed}"

"""Find the Kubernetes nodes on which a job fails repeatedly, so that its new pods avoid them."""

from collections.abc import Sequence

from muster.api.status.restarts import MAX_AVOIDED_NODES, AvoidedNode, RestartRecord
from muster.api.status.status import Status
from muster.core.failure.ends import NODE_STOPPED, STRAGGLER
from muster.core.failure.problems import EVICTED, NODE_SHUTDOWN, POD_DELETED, PREEMPTED

MIN_FAILURES = 2
"""One failure may be a coincidence. But one straggler is enough, because muster has measured it for some time."""

_INTENTIONAL_REASONS = frozenset((NODE_STOPPED, POD_DELETED, PREEMPTED, EVICTED, NODE_SHUTDOWN))
"""Reasons that a person or a controller caused, and that show nothing about the Kubernetes node."""


def find_avoided_nodes(history: Sequence[RestartRecord]) -> tuple[AvoidedNode, ...]:
    """Return the nodes with at least `MIN_FAILURES` failures or a straggler, in the order of their last failures.

    The history is limited, so the job uses a node again after some time without failures.
    """
    by_name: dict[str, list[RestartRecord]] = {}
    for record in history:
        if record.node_name and record.reason not in _INTENTIONAL_REASONS:
            # Move the node to the end of the dict, because it has the latest failure so far.
            by_name[record.node_name] = [*by_name.pop(record.node_name, []), record]
    avoided = (
        AvoidedNode(node_name=name, failures=len(records), reason=records[-1].reason)
        for name, records in by_name.items()
        if len(records) >= MIN_FAILURES or any(record.reason == STRAGGLER for record in records)
    )
    return tuple(avoided)[-MAX_AVOIDED_NODES:]


def read_avoided_nodes(previous: Status) -> tuple[str, ...]:
    """Return the names of the Kubernetes nodes that new pods avoid."""
    return () if previous.restarts is None else tuple(node.node_name for node in previous.restarts.avoided_nodes)

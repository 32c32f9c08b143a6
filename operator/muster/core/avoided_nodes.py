"""Find the Kubernetes nodes on which a job fails repeatedly, so that its new pods go elsewhere."""

from collections.abc import Sequence

from muster.api.status.restarts import MAX_AVOIDED_NODES, AvoidedNode, RestartRecord
from muster.api.status.status import Status
from muster.core.failure.ends import NODE_STOPPED, STRAGGLER
from muster.core.failure.problems import EVICTED, NODE_SHUTDOWN, POD_DELETED, PREEMPTED

MIN_FAILURES = 2
"""One failure may be a coincidence. A straggler is none: muster has measured it for some time."""

_INTENTIONAL_REASONS = frozenset((NODE_STOPPED, POD_DELETED, PREEMPTED, EVICTED, NODE_SHUTDOWN))
"""Reasons that show what a person or a controller wanted, and nothing about the machine."""


def find_avoided_nodes(history: Sequence[RestartRecord]) -> tuple[AvoidedNode, ...]:
    """Return the nodes with at least `MIN_FAILURES` failures or a straggler, in the order of their last failures.

    The history is limited, so nodes that fail no more are used again.
    """
    by_name: dict[str, list[RestartRecord]] = {}
    for record in history:
        if record.node_name and record.reason not in _INTENTIONAL_REASONS:
            # Move the node to the end: the last failure on it is the latest.
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

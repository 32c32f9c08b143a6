"""What the network check measures and between whom: a node's assignment, and its figures from what it measured. Pure.

The nodes are a ring, as in an all-reduce: each sends to the next one while it receives from the one before. It does so
with the second next one as well, so that a slow node can be told from one that has a slow neighbour.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Tuple

from muster_worker.contract.schema import NetworkFigures, Peer

STRIDES = (1, 2)
"""Steps along the ring to those that a node sends to."""

CHECK_SECONDS = 20.0
"""The whole check: agents are told to start within a moment of each other, and one may look for node 0 for 10 s."""

MAX_PROBLEM_CHARS = 256
"""The longest word about a check that the collector takes."""


@dataclass(frozen=True)
class Assignment:
    """What a node's check does: it listens at `own`, sends to `targets`, and `sources` send to it."""

    own: Peer
    targets: Tuple[Peer, ...]
    sources: Tuple[int, ...]
    key: str  # what the checks of one attempt know each other by: no secret, but no other job's has it


@dataclass(frozen=True)
class Measured:
    """One way, from this node to a target: what came through, and the fastest round trip."""

    mbps: float
    round_trip_us: float


def assign(node: int, peers: Sequence[Peer], job_uid: str, attempt: int) -> Optional[Assignment]:
    """The node's part; None when there is no other node, or one can't be sent to as it has no port for it."""
    nodes = len(peers)
    strides = [stride for stride in STRIDES if stride < nodes]
    if not strides or any(peer.check_port is None for peer in peers):
        return None
    return Assignment(
        own=peers[node],
        targets=tuple(peers[(node + stride) % nodes] for stride in strides),
        sources=tuple((node - stride) % nodes for stride in strides),
        key=hashlib.sha256(f"{job_uid}/{attempt}".encode()).hexdigest(),
    )


def figures(
    sent: Mapping[int, Measured], received: Mapping[int, float], problems: Sequence[str], silent: Sequence[int]
) -> NetworkFigures:
    """A node's figures, by the best of its partners: of two, one may be the slow one.

    `received` is in Mbit/s by source; `problems` are of targets, `silent` are the sources that did not come.
    """
    value = list(problems)
    if silent:
        value.append(f"nothing came from node {' and '.join(str(node) for node in silent)}")
    return NetworkFigures(
        sent_mbps=max((one.mbps for one in sent.values()), default=None),
        received_mbps=max(received.values(), default=None),
        round_trip_us=min((one.round_trip_us for one in sent.values()), default=None),
        problem="; ".join(value)[:MAX_PROBLEM_CHARS] or None,
    )


def sentence(found: NetworkFigures) -> str:
    """The figures as a line of the log."""
    parts = []
    if found.sent_mbps is not None and found.round_trip_us is not None:
        parts += [f"{found.sent_mbps:.0f} Mbit/s sent", f"round trip {found.round_trip_us:.0f} us"]
    if found.received_mbps is not None:
        parts.append(f"{found.received_mbps:.0f} Mbit/s received")
    if found.problem is not None:
        parts.append(found.problem)
    return f"network check: {', '.join(parts)}"

"""The network check: each node's assignment, and its results from the measurements. Pure.

The nodes form a ring, as in an all-reduce: each node sends to the next node and receives from the previous one. It does
the same with the nodes at distance two, to distinguish a slow node from a slow neighbour.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Tuple

from muster_worker.contract.network import NetworkFigures
from muster_worker.contract.schema import Peer

STRIDES = (1, 2)
"""Distances along the ring to a node's targets."""

CHECK_SECONDS = 20.0
"""Maximum duration of the check. Agents start it at different times: the connection to node 0 may take up to 10 s."""

MAX_PROBLEM_CHARS = 256
"""The collector rejects longer descriptions of a problem."""


@dataclass(frozen=True)
class Assignment:
    """A node's part in the check: it listens at `own`, sends to `targets`, and receives from `sources`."""

    own: Peer
    targets: Tuple[Peer, ...]
    sources: Tuple[int, ...]
    key: str  # identifies the attempt; unknown to other jobs, but not secret


@dataclass(frozen=True)
class Measurement:
    """The results for one target: rate and fastest round trip."""

    mbps: float
    round_trip_us: float


def assign(node: int, peers: Sequence[Peer], job_uid: str, attempt: int) -> Optional[Assignment]:
    """Return a node's assignment; None if there is no other node, or if a node has no port for the check."""
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


def summarize(
    sent: Mapping[int, Measurement], received: Mapping[int, float], problems: Sequence[str], silent_nodes: Sequence[int]
) -> NetworkFigures:
    """Return a node's results, each from its better partner, because the other partner may be slow itself.

    `received` has Mbit/s by source. `problems` are about targets. `silent_nodes` are sources that did not connect.
    """
    all_problems = list(problems)
    if silent_nodes:
        all_problems.append(f"no data from node {' and '.join(str(node) for node in silent_nodes)}")
    return NetworkFigures(
        sent_mbps=max((measurement.mbps for measurement in sent.values()), default=None),
        received_mbps=max(received.values(), default=None),
        round_trip_us=min((measurement.round_trip_us for measurement in sent.values()), default=None),
        problem="; ".join(all_problems)[:MAX_PROBLEM_CHARS] or None,
    )


def format_figures(figures: NetworkFigures) -> str:
    """Return the results as a log line."""
    parts = []
    if figures.sent_mbps is not None and figures.round_trip_us is not None:
        parts += [f"{figures.sent_mbps:.0f} Mbit/s sent", f"round trip {figures.round_trip_us:.0f} us"]
    if figures.received_mbps is not None:
        parts.append(f"{figures.received_mbps:.0f} Mbit/s received")
    if figures.problem is not None:
        parts.append(figures.problem)
    return f"network check: {', '.join(parts)}"

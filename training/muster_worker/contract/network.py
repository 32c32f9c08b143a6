"""A node's network in its reports: its links, and the results of the network check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

MAX_LINKS = 16
"""Maximum number of a node's network links in a report, the best ones first."""


@dataclass(frozen=True)
class Link:
    """An address of a network interface, with the properties that decide whether to use it."""

    interface: str
    address: str  # with prefix length: 10.79.0.11/16
    speed_mbps: int = 0  # 0: unknown
    rdma: bool = False  # the interface has an EFA or InfiniBand device
    to_operator: bool = False  # the route to the operator uses it


@dataclass(frozen=True)
class NetworkFigures:
    """Results of a node's network check. Each value is from the better partner; None if it was not measured."""

    sent_mbps: Optional[float] = None
    received_mbps: Optional[float] = None
    round_trip_us: Optional[float] = None
    problem: Optional[str] = None  # what could not be measured

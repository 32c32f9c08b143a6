"""Ranges of a job's nodes: `0` or `0-3,7`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class NodeRanges:
    """Parsed ranges of nodes.

    `intervals` has the ranges in their original order. A descending range is empty. `disjoint_intervals` has the same
    nodes in sorted ranges without overlaps.
    """

    intervals: tuple[range, ...]
    disjoint_intervals: tuple[range, ...]

    def __contains__(self, node: int) -> bool:
        """Whether a range contains the node, without expanding the ranges."""
        position = bisect_right(self.disjoint_intervals, node, key=attrgetter("start")) - 1
        return position >= 0 and node in self.disjoint_intervals[position]


def parse(text: str) -> NodeRanges:
    """Parse `text`, which matches the pattern of `nodeOverrides[].nodes`."""
    parts = tuple(_parse_range(part) for part in text.split(","))
    return NodeRanges(parts, _merge_ranges(parts))


def group_nodes(nodes: int, ranges_of_overrides: Sequence[NodeRanges]) -> tuple[tuple[int, ...], ...]:
    """Group the nodes 0 to `nodes` - 1: nodes of a group are in the same members of `ranges_of_overrides`."""
    # one pass over the nodes: at each boundary, toggle the ranges that begin or end there
    changes: dict[int, int] = {}
    for index, ranges in enumerate(ranges_of_overrides):
        for part in ranges.disjoint_intervals:
            for boundary in (part.start, part.stop):
                changes[boundary] = changes.get(boundary, 0) ^ (1 << index)
    groups: dict[int, list[int]] = {}
    members = 0
    for node in range(nodes):
        members ^= changes.get(node, 0)
        groups.setdefault(members, []).append(node)
    return tuple(tuple(group) for group in groups.values())


def _parse_range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def _merge_ranges(ranges_: Sequence[range]) -> tuple[range, ...]:
    intervals: list[range] = []
    for part in sorted(filter(None, ranges_), key=attrgetter("start")):
        if intervals and part.start <= intervals[-1].stop:
            intervals[-1] = range(intervals[-1].start, max(intervals[-1].stop, part.stop))
        else:
            intervals.append(part)
    return tuple(intervals)

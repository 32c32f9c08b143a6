"""Ranges of a job's nodes: `0` or `0-3,7`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class NodeRanges:
    """The nodes that a text names: `intervals` as written, `joined` in order and without overlaps.

    A descending range is empty.
    """

    intervals: tuple[range, ...]
    joined: tuple[range, ...]

    def __contains__(self, node: int) -> bool:
        """Whether the text names the node. Ranges are not expanded, however large they are."""
        place = bisect_right(self.joined, node, key=attrgetter("start")) - 1
        return place >= 0 and node in self.joined[place]


def parse(text: str) -> NodeRanges:
    """Parse `text`, which matches the pattern of `nodeOverrides[].nodes`."""
    parts = tuple(_range(part) for part in text.split(","))
    return NodeRanges(parts, _joined(parts))


def alike(nodes: int, named: Sequence[NodeRanges]) -> tuple[tuple[int, ...], ...]:
    """Group the nodes 0 to `nodes` - 1 by the members of `named` that contain them."""
    # At each border, toggle the ranges that begin or end there: one pass over the nodes is enough.
    changes: dict[int, int] = {}
    for index, ranges in enumerate(named):
        for part in ranges.joined:
            for border in (part.start, part.stop):
                changes[border] = changes.get(border, 0) ^ (1 << index)
    groups: dict[int, list[int]] = {}
    members = 0
    for node in range(nodes):
        members ^= changes.get(node, 0)
        groups.setdefault(members, []).append(node)
    return tuple(tuple(group) for group in groups.values())


def _range(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def _joined(ranges_: Sequence[range]) -> tuple[range, ...]:
    joined: list[range] = []
    for part in sorted(filter(None, ranges_), key=attrgetter("start")):
        if joined and part.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, part.stop))
        else:
            joined.append(part)
    return tuple(joined)

"""The members of an attempt as text in the status, as `members.py` writes them: `0-1,4,3`."""

import re
from collections.abc import Sequence

from muster.api.spec.limits import MAX_NODES_WITH_SPARES

MAX_LISTED_NODES = 3

_RANGES = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")


def find_replaced_members(before: str | None, after: str | None) -> tuple[tuple[int, int], ...]:
    """Return each node that has another node's rank in `after`, with the node that had this rank in `before`.

    Both texts are the members of an attempt as `format_members` writes them. The result is empty if the number of
    members has changed.
    """
    last, following = (() if text is None else parse_members(text, MAX_NODES_WITH_SPARES) for text in (before, after))
    if not last or not following or len(last) != len(following):
        return ()
    return tuple((new, old) for old, new in zip(last, following, strict=True) if new != old)


def describe_replaced_members(replacements: Sequence[tuple[int, int]]) -> str:
    """Describe which node replaces which other node: `node 4 for node 1, node 5 for node 2 and 3 more`."""
    listed = ", ".join(f"node {new} for node {old}" for new, old in replacements[:MAX_LISTED_NODES])
    more = len(replacements) - MAX_LISTED_NODES
    return f"{listed} and {more} more" if more > 0 else listed


def parse_members(text: str, node_limit: int) -> tuple[int, ...] | None:
    """Parse the nodes; None if the text is not what `format_members` writes for nodes 0 to `node_limit` - 1."""
    if _RANGES.fullmatch(text) is None:
        return None
    members: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        part_members = range(int(first), int(last or first) + 1)
        # A user may have edited the status, so don't expand a range that no job has.
        if not part_members or part_members.stop > node_limit or len(members) + len(part_members) > node_limit:
            return None
        members += part_members
    return tuple(members) if len(set(members)) == len(members) else None

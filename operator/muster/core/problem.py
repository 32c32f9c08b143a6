"""A problem of a node, as the user sees it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A problem that the node's agent can't report itself: why the node can't start, can't work or has ended.

    `reason` is one CamelCase word, `message` a sentence for the user without a full stop. `shortage` is the missing
    resource, in words that are equal for all nodes with the same shortage: "insufficient nvidia.com/gpu".
    """

    reason: str
    message: str
    shortage: str = ""

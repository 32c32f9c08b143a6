"""The accelerators of a node."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Devices:
    """The accelerators that a node's container requests: a resource, such as nvidia.com/gpu, and its number."""

    name: str
    count: int

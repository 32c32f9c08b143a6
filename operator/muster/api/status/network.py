"""`status.network` as types: the interfaces of the nodes, and what the network check measured."""

from pydantic import Field

from muster.api.spec.model import Model


class LinkGroup(Model):
    """Nodes whose interface has the same name, speed and reason."""

    interface: str = Field(description="The interface's name on these nodes.")
    speed_mbps: int | None = Field(
        default=None, description="Its speed in Mbit/s; unset if the driver doesn't report it."
    )
    why: str = Field(default="", description="Why the agents chose it.")
    count: int = Field(description="The number of nodes.")
    nodes: str = Field(description="Their ranks, as ranges: 0-12,14-31. At most 512 characters, then an ellipsis.")


class NodeLink(Model):
    """A node's network interface and address."""

    node: int = Field(description="The node's rank.")
    interface: str = Field(description="The interface that its ranks use.")
    address: str = Field(description="The address at which the other nodes reach it.")
    speed_mbps: int | None = Field(
        default=None, description="Its speed in Mbit/s; unset if the driver doesn't report it."
    )
    bandwidth_mbps: float | None = Field(
        default=None, description="What network.check measured, in Mbit/s: the lower of sending and receiving."
    )
    round_trip_microseconds: float | None = Field(
        default=None, description="What network.check measured: the fastest answer from another node."
    )


class SlowNode(Model):
    """A node whose network is much slower than that of the others."""

    node: int = Field(description="The node's rank.")
    name: str = Field(description="The node's pod.")
    bandwidth_mbps: float = Field(description="The lower of sending and receiving, in Mbit/s.")
    round_trip_microseconds: float = Field(description="The fastest answer from another node.")


class NetworkCheck(Model):
    """The result of network.check, from before the ranks start."""

    measured: int = Field(description="How many nodes were measured.")
    median_bandwidth_mbps: float | None = Field(default=None, description="Of these nodes, in Mbit/s.")
    median_round_trip_microseconds: float | None = Field(default=None, description="Of these nodes.")
    slow_count: int = Field(description="How many nodes are 10 times slower than the median.")
    slow: tuple[SlowNode, ...] = Field(default=(), description="The slow nodes, slowest first; at most 16.")
    message: str = Field(description="The result as a sentence, and what could not be measured.")


class NetworkStatus(Model):
    """The network between the ranks, as the agents chose it."""

    groups: tuple[LinkGroup, ...] = Field(
        default=(), description="Nodes that have reported their interface, largest group first; at most 16 groups."
    )
    nodes: tuple[NodeLink, ...] = Field(default=(), description="The address of each node; the first 32.")
    check: NetworkCheck | None = Field(
        default=None, description="The result of network.check; unset until all nodes have reported."
    )

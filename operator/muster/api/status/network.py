"""The types of `status.network`: the nodes' interfaces, and the result of the network check."""

from pydantic import Field

from muster.api.spec.model import Model


class LinkGroup(Model):
    """Nodes whose interfaces have the same name and speed, and were chosen for the same reason."""

    interface: str = Field(description="The interface's name on these nodes.")
    speed_mbps: int | None = Field(
        default=None, description="The interface's speed in Mbit/s; unset if its driver reports none."
    )
    message: str = Field(default="", description="Why the agents chose the interface, as a sentence.")
    count: int = Field(description="The number of nodes.")
    nodes: str = Field(
        description="The nodes, as in their pods' names: 0-12,14-31. Cut off with an ellipsis after 512 characters."
    )


class NodeLink(Model):
    """A node's network interface and address."""

    node: int = Field(description="The node, as in the name of its pod.")
    interface: str = Field(description="The name of the interface that the node's ranks use.")
    address: str = Field(description="The address at which the other nodes reach this node.")
    speed_mbps: int | None = Field(
        default=None, description="The interface's speed in Mbit/s; unset if its driver reports none."
    )
    bandwidth_mbps: float | None = Field(
        default=None, description="The lower of the send and receive bandwidths that network.check measured, in Mbit/s."
    )
    round_trip_microseconds: float | None = Field(
        default=None, description="The shortest round trip to another node that network.check measured."
    )


class SlowNode(Model):
    """A node whose bandwidth or round trip is at least 10 times worse than the median."""

    node: int = Field(description="The node, as in the name of its pod.")
    pod: str | None = Field(default=None, description="The node's pod, on a cluster.")
    bandwidth_mbps: float = Field(description="The lower of the send and receive bandwidths, in Mbit/s.")
    round_trip_microseconds: float = Field(description="The shortest round trip to another node.")


class NetworkCheck(Model):
    """The result of network.check, which runs before the ranks start."""

    measured: int = Field(description="The number of nodes that were measured.")
    median_bandwidth_mbps: float | None = Field(
        default=None, description="The median bandwidth of the measured nodes, in Mbit/s."
    )
    median_round_trip_microseconds: float | None = Field(
        default=None, description="The median round trip of the measured nodes."
    )
    slow_count: int = Field(description="The number of nodes that are at least 10 times slower than the median.")
    slow: tuple[SlowNode, ...] = Field(default=(), description="The slow nodes, slowest first; at most 16.")
    message: str = Field(description="The result as a sentence, and the measurements that failed.")


class NetworkStatus(Model):
    """The network between the ranks."""

    groups: tuple[LinkGroup, ...] = Field(
        default=(), description="The nodes by their interface: at most 16 groups, largest first."
    )
    nodes: tuple[NodeLink, ...] = Field(default=(), description="The interface and address of the first 32 nodes.")
    check: NetworkCheck | None = Field(
        default=None, description="The result of network.check; unset until all nodes have reported theirs."
    )

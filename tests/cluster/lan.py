"""The addresses of the cluster, the same on every machine."""

from dataclasses import dataclass

# The machine's side of the cluster's network; the API server, etcd and the DNS listen only on it.
HOST = "10.77.0.1"
HOST_LINK = "muster0"
API = f"https://{HOST}:6443"
PODS = "10.78.0.0/16"
SERVICES = "10.96.0.0/16"
# The first address of SERVICES is the API server's own Service.
API_SERVICE = "10.96.0.1"
DOMAIN = "cluster.local"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster. Its addresses contain `number`."""

    name: str
    number: int

    @property
    def address(self) -> str:
        """The address on eth0, the network of pods and control plane."""
        return f"10.77.0.{10 + self.number}"

    @property
    def fabric_address(self) -> str:
        """The address on fabric0, a second network between the nodes only, like an interconnect for collectives."""
        return f"10.79.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The address range of its pods."""
        return f"10.78.{self.number}.0/24"


NODES = (Node("node-1", 1), Node("node-2", 2))
"""The nodes for all pods."""

TROUBLED = Node("node-3", 3)
"""A node for pods that tolerate TAINT: tests cut it off, drain it and stop its kubelet."""

ALL_NODES = (*NODES, TROUBLED)
TAINT = "cluster.muster.dev/troubled"


def switch_commands() -> str:
    """Return commands for `ip -batch` in the namespace of the bridges, which the machine's firewall does not affect."""
    lines = ["link set lo up"]
    for bridge in ("lan", "fabric"):
        lines += [f"link add {bridge} type bridge", f"link set {bridge} up"]
    return "\n".join([*lines, "link set host master lan", "link set host up", ""])


def host_commands(switch: int) -> str:
    """Return commands for `ip -batch` on the machine. `switch` is a process in the bridges' namespace."""
    lines = [
        f"link add {HOST_LINK} type veth peer name host netns {switch}",
        f"addr add {HOST}/24 dev {HOST_LINK}",
        f"link set {HOST_LINK} up",
    ]
    routes = [f"route add {node.pods} via {node.address}" for node in ALL_NODES]
    return "\n".join([*lines, *routes, ""])


def cable_commands(node: Node, process: int) -> str:
    """Return commands for `ip -batch` in the bridges' namespace: the node's two cables. `process` runs in the node."""
    lines = []
    for bridge, interface in (("lan", "eth0"), ("fabric", "fabric0")):
        cable = f"{bridge}{node.number}"
        lines += [
            f"link add {cable} type veth peer name {interface} netns {process}",
            f"link set {cable} master {bridge}",
            f"link set {cable} up",
        ]
    return "\n".join([*lines, ""])


def node_commands(node: Node) -> str:
    """Return commands for `ip -batch` in a node: its addresses, and the routes to the other nodes' pods."""
    lines = [
        "link set lo up",
        f"addr add {node.address}/24 dev eth0",
        f"addr add {node.fabric_address}/24 dev fabric0",
        "link set eth0 up",
        "link set fabric0 up",
        f"route add default via {HOST}",
    ]
    others = [f"route add {other.pods} via {other.address}" for other in ALL_NODES if other != node]
    return "\n".join([*lines, *others, ""])

"""Two machines without a route between them, each with an agent, for tests of networks."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from support.agent_world import AgentWorld
from support.network_nodes import NetworkNode, need_namespaces


@dataclass
class Machines:
    """The machines, and the job's world. All reach the collector over eth0, and nothing else."""

    world: AgentWorld
    nodes: tuple[NetworkNode, NetworkNode]

    def connect(self) -> Self:
        """Connect the machines by a fabric and two additional cables."""
        first, second = self.nodes
        first.connect(second, "fabric0", ("10.79.0.11/16", "10.79.0.12/16"))
        first.connect(second, "fabric10", ("10.80.0.11/16", "10.80.0.12/16"), ("fd80::11/64", "fd80::12/64"))
        first.connect(second, "six0", ("fd81::11/64", "fd81::12/64"))
        return self

    def count_sent_bytes(self, name: str) -> list[int]:
        """Return the bytes that each machine has sent over an interface."""
        return [node.read_sent_bytes(name) for node in self.nodes]


@contextmanager
def machines_for(folder: Path) -> Iterator[Machines]:
    """Create the machines; skip the test, with the reason, if the machine allows no namespaces."""
    need_namespaces()
    with ExitStack() as stack:
        nodes = (stack.enter_context(NetworkNode(0)), stack.enter_context(NetworkNode(1)))
        world = stack.enter_context(AgentWorld(folder, nodes[0].gateway))
        for number, node in enumerate(nodes):
            world.within[number] = node.within
            if node.gateway != nodes[0].gateway:
                node.run_ip(f"route add {nodes[0].gateway}/32 via {node.gateway}")
        yield Machines(world, nodes)

"""What the store keeps about one job: its nodes' agents, their commands and the edited code in them."""

import asyncio
from dataclasses import dataclass, field

from muster.core.facts import AgentFacts
from muster.core.reports.check import JobShape
from muster_worker.contract.schema import Command
from muster_worker.contract.source import EditedSource


@dataclass
class Node:
    """A node's agent, its newest command, and the requests that wait for a later one."""

    agent: AgentFacts | None = None
    command: Command | None = None
    waiters: set[asyncio.Future[None]] = field(default_factory=set)


@dataclass
class SharedSource:
    """Edited code, and the nodes that have not begun the attempt with it."""

    source: EditedSource
    nodes: set[int] = field(default_factory=set)


@dataclass
class JobEntry:
    """A registered job. `change_event` is set when a report changes facts."""

    shape: JobShape
    change_event: asyncio.Event = field(default_factory=asyncio.Event)
    has_state_change: bool = False
    nodes: dict[int, Node] = field(default_factory=dict)
    reporting_nodes: int = 0
    sources: dict[str, SharedSource] = field(default_factory=dict)  # by hash

    @property
    def agent_count(self) -> int:
        """The number of agents that exist.

        A node may have no pod yet, and a job that was scaled down keeps the reports of nodes that it no longer has.
        """
        return min(self.reporting_nodes, self.shape.agent_count)

    def get_node(self, number: int) -> Node:
        """Return the node, which may not have reported yet. Raises `ValueError` if the job has no such node."""
        if not 0 <= number < self.shape.nodes:
            raise ValueError(f"node {number}: the job has nodes 0 to {self.shape.nodes - 1}")
        return self.nodes.setdefault(number, Node())

    def remove_nodes(self) -> None:
        """Remove all nodes, and end their agents' long polls."""
        for number in list(self.nodes):
            self.remove_node(number)

    def remove_node(self, number: int) -> None:
        """Remove the node, and end its agent's long polls."""
        node = self.nodes.pop(number, None)
        if node is not None:
            self.reporting_nodes -= node.agent is not None
            wake(node)


def wake(node: Node) -> None:
    """Wake the requests that wait for the node's command."""
    for future in node.waiters:
        if not future.done():
            future.set_result(None)

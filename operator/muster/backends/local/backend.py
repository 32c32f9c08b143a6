"""Run a job's nodes as local processes: observe them, and execute actions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout
from muster.backends.local.processes import AgentProcesses, AgentStart
from muster.backends.local.stop_request import merge_stop_request
from muster.backends.local.storage import get_code_folder
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import add_credentials
from muster.core.actions import (
    Action,
    CreateNode,
    DeleteResource,
    KillNode,
    RemoveNode,
    RemoveSurplusPod,
    SendCommand,
)
from muster.core.facts import JobFacts, NodeFacts, StopRequest
from muster.core.world import count_nodes_and_spares, uploads_to_s3
from muster_worker.contract.schema import Command


@dataclass(frozen=True)
class _SentCommand:
    command: Command
    at: float


@dataclass
class LocalBackend:
    """The nodes of one job. `environments` are the nodes' variables; `write_token` creates a node's token file.

    `clock` returns Unix seconds; the agents' credentials are derived from `seed`.
    """

    job: Job
    layout: RunLayout
    environments: Sequence[Mapping[str, str]]
    processes: AgentProcesses
    store: RankStore
    write_token: Callable[[int, int], None]
    clock: Callable[[], float]
    heartbeat_seconds: float
    seed: bytes = field(repr=False)
    _created_at: float = field(init=False)
    _sent_commands: dict[int, _SentCommand] = field(default_factory=dict)
    _stop: StopRequest | None = None

    def __post_init__(self) -> None:
        self._created_at = self.clock()

    def request_stop(self, by: str, grace_seconds: float) -> None:
        """Stop the job; a repeated request can only shorten the grace period."""
        self._stop = merge_stop_request(self._stop, self.clock(), by, grace_seconds)

    async def observe(self, job: Job) -> JobFacts:
        """Observe the job's nodes."""
        nodes = tuple(self._build_node(job, node) for node in range(count_nodes_and_spares(job)))
        return JobFacts(self._created_at, nodes, self.heartbeat_seconds, self._stop)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:  # noqa: ARG002 - a local run has one job
        """Execute the actions. Raises `OSError` if an agent can't be started."""
        for action in actions:
            match action:
                case CreateNode():
                    await self._create(action)
                case SendCommand():
                    self._send(action)
                case KillNode():
                    self.processes.kill(action.node)
                case RemoveNode() | RemoveSurplusPod() | DeleteResource():
                    raise AssertionError("a local run has nothing to remove")
                case _:
                    assert_never(action)

    def _build_node(self, job: Job, node: int) -> NodeFacts:
        sent_command = self._sent_commands.get(node)
        return NodeFacts(
            node=node,
            name=self.layout.get_node_name(node),
            process=self.processes.get_facts(node),
            agent=self.store.get_agent(job.metadata.uid, node),
            command=sent_command.command if sent_command else None,
            command_sent_at=sent_command.at if sent_command else None,
        )

    async def _create(self, action: CreateNode) -> None:
        # Drop the previous agent's reports and commands.
        if action.replacement > 0:
            self.store.reset_node(self.job.metadata.uid, action.node)
            self._sent_commands.pop(action.node, None)
        self.write_token(action.node, action.replacement)
        await self.processes.start(
            AgentStart(
                node=action.node,
                replacement=action.replacement,
                arguments=build_agent_command(sys.executable, self.layout, action, self.job),
                environment=self.environments[action.node],
                log=self.layout.get_node(action.node).log,
                folder=get_code_folder(self.layout) if self.job.spec.source is not None else None,
            )
        )

    def _send(self, action: SendCommand) -> None:
        command = add_credentials(self.job, action.command, self.seed)
        for node in action.nodes:
            entry = self._sent_commands.get(node)
            if entry is None or entry.command != action.command:
                self._sent_commands[node] = _SentCommand(action.command, self.clock())
            self.store.set_command(self.job.metadata.uid, node, command)


def build_agent_command(python: str, layout: RunLayout, action: CreateNode, job: Job) -> tuple[str, ...]:
    """Return the command line of a node's agent; `{lifeline}` stands for a descriptor that is opened later."""
    node = layout.get_node(action.node)
    return (
        *(python, "-I", str(layout.agent / "__main__.py"), "node"),
        *("--plan", str(layout.plan)),
        *("--node", str(action.node)),
        *("--replacement", str(action.replacement)),
        *("--token", str(node.token)),
        *("--root", str(node.root)),
        *("--run", str(node.run)),
        *("--hosts", str(layout.hosts)),
        *("--lifeline", "{lifeline}"),
        *(("--sync", str(layout.sync)) if uploads_to_s3(job) else ()),
    )

"""A job's nodes as processes of this machine: what is known of them, and doing what the plan decides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout
from muster.backends.local.processes import AgentProcesses, AgentStart
from muster.backends.local.stop_request import asked_to_stop
from muster.backends.local.storage import code_folder
from muster.collector.store import RankStore
from muster.collector.trust.rank_group_credentials import with_credentials
from muster.core.actions import (
    Action,
    CreateNode,
    DeleteResource,
    KillNode,
    RemoveNode,
    RemoveStray,
    SendCommand,
)
from muster.core.facts import JobFacts, NodeFacts, StopRequest
from muster.core.world import uploads_to_s3
from muster_worker.contract.schema import Command


@dataclass(frozen=True)
class _Sent:
    command: Command
    at: float


@dataclass
class LocalBackend:
    """The nodes of one job. `environments` holds each node's, `write_token` makes a node's token file anew.

    `clock` gives Unix seconds, `seed` is what the gang's credentials are derived from.
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
    _sent: dict[int, _Sent] = field(default_factory=dict)
    _stop: StopRequest | None = None

    def __post_init__(self) -> None:
        self._created_at = self.clock()

    def request_stop(self, by: str, grace_seconds: float) -> None:
        """Ask the job to end, or to end sooner."""
        self._stop = asked_to_stop(self._stop, self.clock(), by, grace_seconds)

    async def observe(self, job: Job) -> JobFacts:
        """What is known of the job's nodes now."""
        nodes = tuple(self._node(job, node) for node in range(job.spec.nodes))
        return JobFacts(self._created_at, nodes, self.heartbeat_seconds, self._stop)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:  # noqa: ARG002 - a local run has one job
        """Do what was decided. Raises `OSError` when an agent can't be started."""
        for action in actions:
            match action:
                case CreateNode():
                    await self._create(action)
                case SendCommand():
                    self._send(action)
                case KillNode():
                    self.processes.kill(action.node)
                case RemoveNode() | RemoveStray() | DeleteResource():
                    raise AssertionError("a local run is over before there is anything to remove")
                case _:
                    assert_never(action)

    def _node(self, job: Job, node: int) -> NodeFacts:
        sent = self._sent.get(node)
        return NodeFacts(
            node=node,
            name=self.layout.node_name(node),
            process=self.processes.facts(node),
            agent=self.store.agent(job.metadata.uid, node),
            command=sent.command if sent else None,
            commanded_at=sent.at if sent else None,
        )

    async def _create(self, action: CreateNode) -> None:
        self.write_token(action.node, action.replacement)
        await self.processes.start(
            AgentStart(
                node=action.node,
                replacement=action.replacement,
                arguments=agent_command(sys.executable, self.layout, action, self.job),
                environment=self.environments[action.node],
                log=self.layout.node(action.node).log,
                folder=code_folder(self.layout) if self.job.spec.source is not None else None,
            )
        )

    def _send(self, action: SendCommand) -> None:
        command = with_credentials(self.job, action.command, self.seed)
        for node in action.nodes:
            entry = self._sent.get(node)
            if entry is None or entry.command != action.command:
                self._sent[node] = _Sent(action.command, self.clock())
            self.store.send(self.job.metadata.uid, node, command)


def agent_command(python: str, layout: RunLayout, action: CreateNode, job: Job) -> tuple[str, ...]:
    """The command line of a node's agent; `{lifeline}` becomes the descriptor's number when it is started."""
    node = layout.node(action.node)
    return (
        *(python, "-I", str(layout.archive), "node"),
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

"""Run a training job's hosts as local processes: observe them, and execute actions.

SageMaker starts all containers at once and observes only whether they run. So a host counts as started when its process
runs, and a command is sent as a signal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout
from muster.backends.local.processes import AgentProcesses, AgentStart
from muster.backends.local.stop_request import merge_stop_request
from muster.backends.local.toolkit.host import TrainingPlaces, build_host_command
from muster.core.actions import Action, CreateNode, DeleteResource, KillNode, RemoveNode, RemoveSurplusPod, SendCommand
from muster.core.facts import (
    AgentFacts,
    JobFacts,
    MetricFacts,
    NodeFacts,
    ProcessFacts,
    ProcessState,
    RankFacts,
    StopRequest,
)
from muster.core.failure import rank_output
from muster.core.problem import Problem
from muster.core.world import get_procs_per_node
from muster_worker.contract.schema import (
    AgentPhase,
    Command,
    CommandKind,
    RankReport,
    RankState,
    Report,
)
from muster_worker.sagemaker.container import MAX_FAILURE_CHARS

HEARTBEAT_SECONDS = 60.0
"""Ranks write a line every 30 s. The toolkit loads the framework before the first line."""

PEER_FAILURE_SECONDS = 10.0
"""The time that the other ranks have to fail and print their own errors after a failure, as on SageMaker."""

_ATTEMPT = 1


@dataclass
class ToolkitBackend:
    """The hosts of one job. `get_agents` returns their ranks' reports, by node; `clock` returns Unix seconds.

    `has_reports`: the ranks can report by log lines. `read_metrics` returns a node's metrics, which SageMaker's
    MetricDefinitions find in its output.
    """

    job: Job
    layout: RunLayout
    hosts: tuple[str, ...]
    python: str
    environment: Mapping[str, str]
    processes: AgentProcesses
    get_agents: Callable[[], Mapping[int, AgentFacts]]
    read_metrics: Callable[[int], tuple[MetricFacts, ...]]
    has_reports: bool
    clock: Callable[[], float]
    _created_at: float = field(init=False)
    _sent_commands: dict[int, tuple[Command, float]] = field(default_factory=dict)
    _stop: StopRequest | None = None

    def __post_init__(self) -> None:
        self._created_at = self.clock()

    def request_stop(self, by: str, grace_seconds: float) -> None:
        """Stop the job; a repeated request can only shorten the grace period."""
        self._stop = merge_stop_request(self._stop, self.clock(), by, grace_seconds)

    async def observe(self, job: Job) -> JobFacts:
        """Observe the job's hosts."""
        agents = self.get_agents()
        nodes = tuple(self._build_node(job, node, agents.get(node)) for node in range(job.spec.nodes))
        return JobFacts(self._created_at, nodes, HEARTBEAT_SECONDS, self._stop)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:  # noqa: ARG002 - a local run has one job
        """Execute the actions. Raises `OSError` if a host's process can't be started."""
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

    def _build_node(self, job: Job, node: int, agent: AgentFacts | None) -> NodeFacts:
        process = self.processes.get_facts(node)
        command, at = self._sent_commands.get(node, (None, None))
        if process.state is ProcessState.MISSING:
            return NodeFacts(node, self.hosts[node], process)
        if process.state is ProcessState.EXITED:
            process = replace(process, problem=self._find_problem(process))
        current = agent or self._derive_agent_facts(job, process, node)
        current = replace(current, metrics=(*current.metrics, *self.read_metrics(node)))
        return NodeFacts(node, self.hosts[node], process, current, command, at)

    def _derive_agent_facts(self, job: Job, process: ProcessFacts, node: int) -> AgentFacts:
        """Derive the facts of a host whose ranks have not reported."""
        # Once one rank has reported, all must: a rank without a report may never have run.
        succeeded = process.exit_code == 0 and not self.get_agents()
        # A rank without reports has the state of its host's process.
        ranks = _build_ranks_from_host(job, process, node) if succeeded or not self.has_reports else ()
        reported_at = process.started_at if self.has_reports else self.clock()
        phase = AgentPhase.ENDED if succeeded else AgentPhase.RUNNING
        reports = tuple(facts.report for facts in ranks)
        report = Report(job.metadata.uid, node, process.replacement, _ATTEMPT, 0, phase, ranks=reports)
        return AgentFacts(report, reported_at or 0.0, ranks)

    def _find_problem(self, process: ProcessFacts) -> Problem | None:
        if process.exit_code == 0:
            return None
        result = f"exit code {process.exit_code}" if process.signal is None else f"signal {process.signal}"
        failure = rank_output.sanitize_line(self._read_failure_file(), limit=MAX_FAILURE_CHARS)
        return Problem("LauncherFailed", f"SageMaker's toolkit ended with {result}{f': {failure}' if failure else ''}")

    def _read_failure_file(self) -> str:
        """Return the start of the failure file, which the first failed host writes: SageMaker's FailureReason."""
        try:
            with (self.layout.output / "failure").open(encoding="utf-8", errors="replace") as file:
                return file.read(MAX_FAILURE_CHARS)
        except OSError:
            return ""

    async def _create(self, action: CreateNode) -> None:
        await self.processes.start(
            AgentStart(
                node=action.node,
                replacement=action.replacement,
                arguments=build_host_command(TrainingPlaces(self.layout.private), self.python, action.node),
                environment=self.environment,
                log=self.layout.get_node(action.node).log,
            )
        )

    def _send(self, action: SendCommand) -> None:
        for node in action.nodes:
            self._sent_commands[node] = (action.command, self.clock())
            if action.command.kind == CommandKind.KILL:
                self.processes.kill(node)
            elif action.command.kind in (CommandKind.STOP, CommandKind.EXIT):
                delay = PEER_FAILURE_SECONDS if self._stop is None else 0.0
                asyncio.get_running_loop().call_later(delay, self.processes.terminate, node)


def _build_ranks_from_host(job: Job, process: ProcessFacts, node: int) -> tuple[RankFacts, ...]:
    """Derive the ranks' states from their host's process: like SageMaker, assume that they run and succeed together."""
    procs = get_procs_per_node(job)
    succeeded = process.exit_code == 0
    state, code, ended_at = (RankState.EXITED, 0, process.ended_at) if succeeded else (RankState.RUNNING, None, None)
    reports = (RankReport(node * procs + local, local, state, exit_code=code) for local in range(procs))
    return tuple(RankFacts(report, process.started_at, ended_at) for report in reports)

"""Store agents' reports and commands in memory. Agents report again to a new leader."""

import asyncio
from dataclasses import dataclass, field, replace

from muster.collector.memory_shares import MemoryShares, Share
from muster.collector.pod_directory import Member
from muster.core.facts import AgentFacts
from muster.core.reports.check import JobShape, check_report
from muster.core.reports.merge import merge_report
from muster.core.reports.texts import drop_texts, measure_texts
from muster_worker.contract.schema import Command, Order, Report
from muster_worker.contract.source import EditedSource

_MIB = 1024 * 1024


class UnknownJob(LookupError):
    """The job is not registered, or the pod was replaced."""


@dataclass
class _Node:
    agent: AgentFacts | None = None
    command: Command | None = None
    waiting: set[asyncio.Future[None]] = field(default_factory=set)


@dataclass
class _HeldSource:
    """Edited code, and the nodes that have not begun the attempt with it."""

    source: EditedSource
    nodes: set[int] = field(default_factory=set)


@dataclass
class _Entry:
    shape: JobShape
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    nodes: dict[int, _Node] = field(default_factory=dict)
    sources: dict[str, _HeldSource] = field(default_factory=dict)  # by hash

    def node(self, number: int) -> _Node:
        if not 0 <= number < self.shape.nodes:
            raise ValueError(f"node {number}: the job has nodes 0 to {self.shape.nodes - 1}")
        return self.nodes.setdefault(number, _Node())

    def forget(self) -> None:
        for number in list(self.nodes):
            self.replace(number)

    def replace(self, number: int) -> None:
        node = self.nodes.pop(number, None)
        if node is not None:
            _wake(node)


class RankStore:
    """The registered jobs, with the newest facts about each agent and the newest command for it."""

    def __init__(self, texts: MemoryShares | None = None, sources: MemoryShares | None = None) -> None:
        self._texts = texts or MemoryShares(per_namespace=48 * _MIB, total=144 * _MIB, floor=_MIB)
        self._sources = sources or MemoryShares(per_namespace=16 * _MIB, total=48 * _MIB, floor=_MIB)
        self._jobs: dict[str, _Entry] = {}
        # The number of agents, which each report needs.
        self._agents = 0

    def register(self, shape: JobShape) -> None:
        """Accept reports of this job. Registering the same shape twice changes nothing.

        If the shape has changed, because the job was scaled while suspended, the old reports are dropped.
        """
        entry = self._jobs.get(shape.job_uid)
        if entry is None:
            self._jobs[shape.job_uid] = _Entry(shape)
            self._agents += shape.agent_count
            return
        self._agents += shape.agent_count - entry.shape.agent_count
        # An elastic job is scaled while its agents report.
        is_same = replace(entry.shape, agents=shape.agents) == shape
        entry.shape = shape
        if not is_same:
            self._release_texts(entry)
            self._release_sources(entry)
            entry.forget()

    def forget(self, job_uid: str) -> None:
        """Remove the job, and end its agents' long polls."""
        entry = self._jobs.pop(job_uid, None)
        if entry is not None:
            self._agents -= entry.shape.agent_count
            self._release_texts(entry)
            self._release_sources(entry)
            entry.forget()

    def replace(self, job_uid: str, node: int) -> None:
        """Drop the reports and the command of the node's old pod, which a new pod replaces."""
        entry = self._jobs.get(job_uid)
        if entry is not None:
            self._texts.release(_key(entry, node))
            self._drop_source(entry, node)
            entry.replace(node)

    def clear(self) -> None:
        """Remove all jobs, because another operator is the leader."""
        for job_uid in list(self._jobs):
            self.forget(job_uid)

    def shape(self, job_uid: str) -> JobShape:
        """Return the job's registered shape. Raises `UnknownJob`."""
        return self._entry(job_uid).shape

    def agent_count(self) -> int:
        """Return the number of agents that registered jobs have now, which determines the heartbeat."""
        return self._agents

    def record(self, member: Member, report: Report, at: float) -> None:
        """Record the report of an agent, which arrived `at` (Unix seconds).

        Raises `UnknownJob`, and `Implausible` if the report can't belong to this job.
        """
        entry = self._entry(member.job_uid)
        if (report.job_uid, report.node, report.replacement) != (member.job_uid, member.node, member.replacement):
            raise ValueError("the report does not belong to the pod that sent it")
        check_report(report, entry.shape, at)
        node = entry.node(member.node)
        merged = merge_report(node.agent, report, at)
        if not self._texts.reserve(_key(entry, member.node), Share(entry.shape.namespace, measure_texts(merged))):
            merged = drop_texts(merged)
        if node.command is not None and report.attempt >= node.command.attempt:
            self._drop_source(entry, member.node)
        if merged != node.agent:
            node.agent = merged
            entry.changed.set()

    def agent(self, job_uid: str, node: int) -> AgentFacts | None:
        """Return the facts about a node's agent; None until it has reported."""
        entry = self._jobs.get(job_uid)
        current = entry.nodes.get(node) if entry is not None else None
        return current.agent if current is not None else None

    def send(self, job_uid: str, node: int, command: Command) -> bool:
        """Set the node's command, unless it already has a later one. Return False if its source finds no memory.

        Raises `UnknownJob`.
        """
        if command.job_uid != job_uid:
            raise ValueError("the command belongs to another job")
        entry = self._entry(job_uid)
        current = entry.node(node)
        if current.command is None or command.order > current.command.order:
            self._drop_source(entry, node)
            held = self._hold_source(entry, node, command)
            if held is None:
                return False
            current.command = held
            _wake(current)
        return True

    def command(self, job_uid: str, node: int, after: Order | None) -> Command | None:
        """Return the node's command if it is later than `after`. Raises `UnknownJob`."""
        command = self._entry(job_uid).node(node).command
        return command if command is not None and (after is None or command.order > after) else None

    async def next_command(self, job_uid: str, node: int, after: Order | None) -> Command:
        """Wait for a command that is later than `after`.

        Raises `UnknownJob`, also if the job is removed or the node's pod is replaced meanwhile.
        """
        entry = self._entry(job_uid)
        if node >= entry.shape.nodes:
            raise UnknownJob("the job has no such node")
        current = entry.node(node)
        while (command := self.command(job_uid, node, after)) is None:
            future = asyncio.get_running_loop().create_future()
            current.waiting.add(future)
            try:
                await future
            finally:
                current.waiting.discard(future)
            # the next command is for the new pod
            if self._entry(job_uid).nodes.get(node) is not current:
                raise UnknownJob("the node's pod was replaced")
        return command

    def changed(self, job_uid: str) -> asyncio.Event:
        """Return the event that is set when a report changes facts. The caller clears it. Raises `UnknownJob`."""
        return self._entry(job_uid).changed

    def _hold_source(self, entry: _Entry, number: int, command: Command) -> Command | None:
        """Return the command with the code that all nodes of the job share; None if there is no memory for it."""
        if command.source is None:
            return command
        sha256 = command.source.sha256
        held = entry.sources.get(sha256)
        if held is None:
            share = Share(entry.shape.namespace, len(command.source.archive))
            if not self._sources.reserve(_source_key(entry, sha256), share):
                return None
            held = entry.sources[sha256] = _HeldSource(command.source)
        held.nodes.add(number)
        return replace(command, source=held.source)

    def _drop_source(self, entry: _Entry, number: int) -> None:
        """Drop the source of the node's command: the agent has begun the attempt, or gets a later command."""
        node = entry.nodes.get(number)
        source = None if node is None or node.command is None else node.command.source
        held = None if source is None else entry.sources.get(source.sha256)
        if node is None or node.command is None or source is None or held is None or number not in held.nodes:
            return
        node.command = replace(node.command, source=replace(source, archive=""))
        held.nodes.discard(number)
        if not held.nodes:
            del entry.sources[source.sha256]
            self._sources.release(_source_key(entry, source.sha256))

    def _release_sources(self, entry: _Entry) -> None:
        for sha256 in entry.sources:
            self._sources.release(_source_key(entry, sha256))
        entry.sources.clear()

    def _release_texts(self, entry: _Entry) -> None:
        for node in entry.nodes:
            self._texts.release(_key(entry, node))

    def _entry(self, job_uid: str) -> _Entry:
        entry = self._jobs.get(job_uid)
        if entry is None:
            raise UnknownJob("the job is not registered")
        return entry


def _source_key(entry: _Entry, sha256: str) -> str:
    return f"{entry.shape.job_uid}/{sha256}"


def _key(entry: _Entry, node: int) -> str:
    return f"{entry.shape.job_uid} {node}"


def _wake(node: _Node) -> None:
    for future in node.waiting:
        if not future.done():
            future.set_result(None)

"""Store agents' reports and commands in memory. Agents report again to a new leader."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from muster.collector.agent_memory import AgentMemory, NoMemory
from muster.collector.heartbeat import compute_heartbeat_seconds, compute_namespace_rate
from muster.collector.job_entry import JobEntry, SharedSource, wake
from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.collector.pod_directory import PodIdentity
from muster.core.facts import AgentFacts
from muster.core.reports.check import JobShape, check_report
from muster.core.reports.merge import drop_ranks_of_other_nodes, merge_report
from muster.core.reports.state_change import has_state_changed
from muster_worker.contract.schema import Command, Order, Report

_MIB = 1024 * 1024

_MAX_GAP_HEARTBEATS = 2.0
"""A node that has not reported for this number of intervals may be silent soon (`JobFacts.is_silent`)."""


class UnknownJob(LookupError):
    """The job is not registered, or the pod was replaced."""


class RankStore:
    """Stores the newest facts about each agent of the registered jobs, and the newest command for it."""

    def __init__(
        self,
        text_limits: MemoryLimits | None = None,
        source_limits: MemoryLimits | None = None,
        fact_limits: MemoryLimits | None = None,
    ) -> None:
        self._agent_memory = AgentMemory(text_limits, fact_limits)
        self._source_limits = source_limits or MemoryLimits(per_namespace=16 * _MIB, total=48 * _MIB, guaranteed=_MIB)
        self._jobs: dict[str, JobEntry] = {}
        # The heartbeat interval in the response to each report depends on the number of agents.
        self._agents: Counter[str] = Counter()
        self._namespace_rate: float | None = None  # None: not computed since the number of agents changed

    def register_job(self, shape: JobShape) -> None:
        """Accept reports of this job. Registering the same shape twice changes nothing.

        If the shape has changed, drop the old reports: the job was scaled while it was suspended.
        """
        entry = self._jobs.get(shape.job_uid)
        if entry is None:
            self._jobs[shape.job_uid] = JobEntry(shape)
            return
        # An elastic job is scaled while it runs: keep its agents' reports.
        is_same = replace(entry.shape, agents=shape.agents) == shape
        with self._count_agents_of(entry):
            entry.shape = shape
            if not is_same:
                self._remove_nodes(entry)

    def remove_job(self, job_uid: str) -> None:
        """Remove the job, and end its agents' long polls."""
        entry = self._jobs.pop(job_uid, None)
        if entry is not None:
            with self._count_agents_of(entry):
                self._remove_nodes(entry)

    def reset_node(self, job_uid: str, node: int) -> None:
        """Drop the reports and the command of the node's old pod, which a new pod replaces."""
        entry = self._jobs.get(job_uid)
        if entry is not None:
            self._agent_memory.release(_make_key(entry, node))
            self._release_source(entry, node)
            with self._count_agents_of(entry):
                entry.remove_node(node)

    def clear(self) -> None:
        """Remove all jobs, because another operator is the leader."""
        for job_uid in list(self._jobs):
            self.remove_job(job_uid)

    def get_shape(self, job_uid: str) -> JobShape:
        """Return the job's registered shape. Raises `UnknownJob`."""
        return self._get_entry(job_uid).shape

    def count_agents(self, namespace: str) -> int:
        """Return the number of agents of the namespace's registered jobs that have reported."""
        return self._agents[namespace]

    def get_heartbeat_seconds(self, namespace: str) -> float:
        """Return the interval at which the agents of the namespace report."""
        if self._namespace_rate is None:
            self._namespace_rate = compute_namespace_rate(self._agents.values())
        return compute_heartbeat_seconds(self.count_agents(namespace), self._namespace_rate)

    def record_report(self, pod_identity: PodIdentity, report: Report, at: float) -> float:
        """Record the report of an agent, which arrived `at` (Unix seconds). Return the interval to answer it with.

        Raises `UnknownJob`, `ImplausibleReport` if the report can't belong to this job, and `NoMemory`.
        """
        entry = self._get_entry(pod_identity.job_uid)
        if (report.job_uid, report.node, report.replacement) != (
            pod_identity.job_uid,
            pod_identity.node,
            pod_identity.replacement,
        ):
            raise ValueError("the report does not belong to the pod that sent it")
        check_report(report, entry.shape, at)
        node = entry.get_node(pod_identity.node)
        known_facts = node.agent and drop_ranks_of_other_nodes(node.agent, report, entry.shape)
        try:
            merged_facts = self._agent_memory.reserve(
                _make_key(entry, pod_identity.node), entry.shape.namespace, merge_report(known_facts, report, at)
            )
        except NoMemory:
            # The node is alive, although others use the memory for its facts.
            if node.agent is not None and node.agent.report.replacement == report.replacement:
                node.agent = replace(node.agent, last_report_at=at)
            raise
        if node.command is not None and report.attempt >= node.command.attempt:
            self._release_source(entry, pod_identity.node)
        if node.agent is None:
            with self._count_agents_of(entry):
                entry.reporting_nodes += 1
        heartbeat_seconds = self.get_heartbeat_seconds(entry.shape.namespace)
        # The agent waits this long, even if the interval is shorter by then.
        merged_facts = replace(merged_facts, heartbeat_seconds=heartbeat_seconds)
        if merged_facts != node.agent:
            last_heartbeat_seconds = None if node.agent is None else node.agent.heartbeat_seconds
            max_gap_seconds = _MAX_GAP_HEARTBEATS * (last_heartbeat_seconds or heartbeat_seconds)
            entry.has_state_change |= has_state_changed(node.agent, merged_facts, max_gap_seconds)
            node.agent = merged_facts
            entry.change_event.set()
        return heartbeat_seconds

    def get_agent(self, job_uid: str, node: int) -> AgentFacts | None:
        """Return the facts about a node's agent; None until it has reported."""
        entry = self._jobs.get(job_uid)
        current = entry.nodes.get(node) if entry is not None else None
        return current.agent if current is not None else None

    def set_command(self, job_uid: str, node: int, command: Command) -> bool:
        """Set the node's command, unless it already has a later one. Return False if there is no memory for its source.

        Raises `UnknownJob`.
        """
        if command.job_uid != job_uid:
            raise ValueError("the command belongs to another job")
        entry = self._get_entry(job_uid)
        current = entry.get_node(node)
        if current.command is None or command.order > current.command.order:
            self._release_source(entry, node)
            sent_command = self._share_source(entry, node, command)
            if sent_command is None:
                return False
            current.command = sent_command
            wake(current)
        return True

    def get_command(self, job_uid: str, node: int, after: Order | None) -> Command | None:
        """Return the node's command if it is later than `after`. Raises `UnknownJob`."""
        command = self._get_entry(job_uid).get_node(node).command
        return command if command is not None and (after is None or command.order > after) else None

    async def wait_for_command(self, job_uid: str, node: int, after: Order | None) -> Command:
        """Wait for a command that is later than `after`.

        Raises `UnknownJob`, also if the job is removed or the node's pod is replaced meanwhile.
        """
        entry = self._get_entry(job_uid)
        if node >= entry.shape.nodes:
            raise UnknownJob("the job has no such node")
        current = entry.get_node(node)
        while (command := self.get_command(job_uid, node, after)) is None:
            future = asyncio.get_running_loop().create_future()
            current.waiters.add(future)
            try:
                await future
            finally:
                current.waiters.discard(future)
            # the next command is for the new pod
            if self._get_entry(job_uid).nodes.get(node) is not current:
                raise UnknownJob("the node's pod was replaced")
        return command

    def get_change_event(self, job_uid: str) -> asyncio.Event:
        """Return the event that is set when a report changes facts. The caller clears it. Raises `UnknownJob`."""
        return self._get_entry(job_uid).change_event

    def has_state_change(self, job_uid: str) -> bool:
        """Whether a report has changed more than progress since `clear_state_change`."""
        entry = self._jobs.get(job_uid)
        return entry is not None and entry.has_state_change

    def clear_state_change(self, job_uid: str) -> None:
        """Forget the changes until now, because a reconcile begins."""
        entry = self._jobs.get(job_uid)
        if entry is not None:
            entry.has_state_change = False

    def _share_source(self, entry: JobEntry, number: int, command: Command) -> Command | None:
        """Return the command with the code that all nodes of the job share; None if there is no memory for it."""
        if command.source is None:
            return command
        sha256 = command.source.sha256
        shared_source = entry.sources.get(sha256)
        if shared_source is None:
            size = ObjectSize(entry.shape.namespace, len(command.source.archive))
            if not self._source_limits.reserve(_make_source_key(entry, sha256), size):
                return None
            shared_source = entry.sources[sha256] = SharedSource(command.source)
        shared_source.nodes.add(number)
        return replace(command, source=shared_source.source)

    def _release_source(self, entry: JobEntry, number: int) -> None:
        """Drop the source of the node's command: the agent has begun the attempt, or gets a later command."""
        node = entry.nodes.get(number)
        source = None if node is None or node.command is None else node.command.source
        shared_source = None if source is None else entry.sources.get(source.sha256)
        if (
            node is None
            or node.command is None
            or source is None
            or shared_source is None
            or number not in shared_source.nodes
        ):
            return
        node.command = replace(node.command, source=replace(source, archive=""))
        shared_source.nodes.discard(number)
        if not shared_source.nodes:
            del entry.sources[source.sha256]
            self._source_limits.release(_make_source_key(entry, source.sha256))

    def _release_all_sources(self, entry: JobEntry) -> None:
        for sha256 in entry.sources:
            self._source_limits.release(_make_source_key(entry, sha256))
        entry.sources.clear()

    @contextmanager
    def _count_agents_of(self, entry: JobEntry) -> Iterator[None]:
        """Add to the number of agents by how much the block changes that of this job."""
        before = entry.agent_count
        yield
        change, namespace = entry.agent_count - before, entry.shape.namespace
        if not change:
            return
        self._namespace_rate = None
        self._agents[namespace] += change
        if not self._agents[namespace]:
            del self._agents[namespace]

    def _remove_nodes(self, entry: JobEntry) -> None:
        for node in entry.nodes:
            self._agent_memory.release(_make_key(entry, node))
        self._release_all_sources(entry)
        entry.remove_nodes()

    def _get_entry(self, job_uid: str) -> JobEntry:
        entry = self._jobs.get(job_uid)
        if entry is None:
            raise UnknownJob("the job is not registered")
        return entry


def _make_source_key(entry: JobEntry, sha256: str) -> str:
    return f"{entry.shape.job_uid}/{sha256}"


def _make_key(entry: JobEntry, node: int) -> str:
    return f"{entry.shape.job_uid} {node}"

"""What agents reported and what they were told, for every job of this process. In memory: agents tell it all again.

Belongs to one event loop and is used from it alone. Its size is bounded by the jobs' shapes and by `check`; that of
the texts in it for each namespace and for all together.
"""

import asyncio
from dataclasses import dataclass, field

from muster.plan.facts import AgentFacts
from muster.ranks.check import Shape, check
from muster.ranks.directory import Member
from muster.ranks.memory_shares import MemoryShares, Share
from muster.ranks.merge import merge
from muster.ranks.texts import text_bytes, without_texts
from muster_worker.contract.schema import Command, Order, Report

_MIB = 1024 * 1024


class UnknownJob(LookupError):
    """The job, or this pod of it, is not expected: not registered yet, or forgotten."""


@dataclass
class _Node:
    agent: AgentFacts | None = None
    command: Command | None = None
    waiting: set[asyncio.Future[None]] = field(default_factory=set)


@dataclass
class _Entry:
    shape: Shape
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    nodes: dict[int, _Node] = field(default_factory=dict)

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
    """Jobs, the newest facts of their agents, and the newest command of each."""

    def __init__(self, texts: MemoryShares | None = None) -> None:
        self._texts = texts or MemoryShares(per_namespace=48 * _MIB, total=144 * _MIB, floor=_MIB)
        self._jobs: dict[str, _Entry] = {}
        # Asked for with every report: it is not counted anew each time.
        self._agents = 0

    def register(self, shape: Shape) -> None:
        """Expect reports of this job. Again with the same shape, nothing changes.

        With another one (the job was scaled while it was suspended) all that its agents said is forgotten; who waits
        for `changed` goes on waiting.
        """
        entry = self._jobs.get(shape.job_uid)
        if entry is None:
            self._jobs[shape.job_uid] = _Entry(shape)
            self._agents += shape.nodes
        elif entry.shape != shape:
            self._agents += shape.nodes - entry.shape.nodes
            self._give_back(entry)
            entry.shape = shape
            entry.forget()

    def forget(self, job_uid: str) -> None:
        """Drop all that is known of the job, and let go of who waits for its commands."""
        entry = self._jobs.pop(job_uid, None)
        if entry is not None:
            self._agents -= entry.shape.nodes
            self._give_back(entry)
            entry.forget()

    def replace(self, job_uid: str, node: int) -> None:
        """The node gets a new pod: what the old one said and was told is not the new one's."""
        entry = self._jobs.get(job_uid)
        if entry is not None:
            self._texts.give_back(_key(entry, node))
            entry.replace(node)

    def clear(self) -> None:
        """Forget every job: another operator decides from now on, and this one learns anew should it lead again."""
        for job_uid in list(self._jobs):
            self.forget(job_uid)

    def shape(self, job_uid: str) -> Shape:
        """What the job was registered with. Raises `UnknownJob`."""
        return self._entry(job_uid).shape

    def agents(self) -> int:
        """How many agents the registered jobs have: what the pace is made from."""
        return self._agents

    def record(self, member: Member, report: Report, at: float) -> None:
        """Take in what the agent of `member` reported at `at` (Unix seconds).

        Raises `UnknownJob`; `Implausible` when the report can't be of this job. The report must be of the member.
        """
        entry = self._entry(member.job_uid)
        if (report.job_uid, report.node, report.replacement) != (member.job_uid, member.node, member.replacement):
            raise ValueError("the report is not of the pod that sent it")
        check(report, entry.shape, at)
        node = entry.node(member.node)
        merged = merge(node.agent, report, at)
        if not self._texts.take(_key(entry, member.node), Share(entry.shape.namespace, text_bytes(merged))):
            merged = without_texts(merged)
        if merged != node.agent:
            node.agent = merged
            entry.changed.set()

    def agent(self, job_uid: str, node: int) -> AgentFacts | None:
        """What is known of a node's agent; None until it reported."""
        entry = self._jobs.get(job_uid)
        current = entry.nodes.get(node) if entry is not None else None
        return current.agent if current is not None else None

    def send(self, job_uid: str, node: int, command: Command) -> None:
        """Make `command` the node's current one, unless that is a higher one already. Raises `UnknownJob`."""
        if command.job_uid != job_uid:
            raise ValueError("the command is of another job")
        current = self._entry(job_uid).node(node)
        if current.command is None or command.order > current.command.order:
            current.command = command
            _wake(current)

    def command(self, job_uid: str, node: int, after: Order | None) -> Command | None:
        """The node's current command when it is above `after`. Raises `UnknownJob`."""
        command = self._entry(job_uid).node(node).command
        return command if command is not None and (after is None or command.order > after) else None

    async def next_command(self, job_uid: str, node: int, after: Order | None) -> Command:
        """Wait for a command above `after`.

        Raises `UnknownJob`, also when the job is forgotten or the node's pod replaced meanwhile, and for a node that
        the job doesn't have (any more).
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
            # a command that came with a new pod is not for the old one
            if self._entry(job_uid).nodes.get(node) is not current:
                raise UnknownJob("the node's pod was replaced")
        return command

    def changed(self, job_uid: str) -> asyncio.Event:
        """Set by every report that told something new; its one reader clears it. Raises `UnknownJob`."""
        return self._entry(job_uid).changed

    def _give_back(self, entry: _Entry) -> None:
        for node in entry.nodes:
            self._texts.give_back(_key(entry, node))

    def _entry(self, job_uid: str) -> _Entry:
        entry = self._jobs.get(job_uid)
        if entry is None:
            raise UnknownJob("the job is not registered")
        return entry


def _key(entry: _Entry, node: int) -> str:
    return f"{entry.shape.job_uid} {node}"


def _wake(node: _Node) -> None:
    for future in node.waiting:
        if not future.done():
            future.set_result(None)

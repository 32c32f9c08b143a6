"""A job's nodes as pods of a cluster: what is known of them, and doing what the plan decides."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from muster.api.spec.job import Job
from muster.api.timestamps import from_text
from muster.backends.kubernetes.children import Children
from muster.backends.kubernetes.creation import UNTOLD_SECONDS, Creation
from muster.backends.kubernetes.ledger import Ledger, Removal, Sent
from muster.backends.kubernetes.pod_index import PodEntry, PodIndex
from muster.clients.kubernetes.client import Client
from muster.collector.pace import heartbeat_seconds
from muster.collector.store import RankStore
from muster.collector.trust.rank_group_credentials import with_credentials
from muster.core.actions import Action, CreateNode, DeleteResource, KillNode, RemoveNode, RemoveStray, SendCommand
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.lost_nodes import LOST_SECONDS, lost_at
from muster.diagnose.kubernetes.node_facts import as_heard, is_own_doing, missing_process
from muster.diagnose.kubernetes.start_problems import CONFIG_MISSING
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, PODS
from muster.objects.kubernetes.names import children_name
from muster.objects.kubernetes.pods import PodView, read_pod
from muster.render.kubernetes.setting import Setting

KILL_GRACE_SECONDS = 1
"""The least: with none the API server forgets a pod at once, and does not wait for its processes to end."""

NODES_AT_ONCE = 500
"""Looked at in one piece, in about 10 ms; then others have the event loop."""


@dataclass
class KubernetesBackend:
    """The pods of all jobs, for as long as this process leads.

    `authority` gives the certificates that agents shall trust, as PEM, `seed` what the gangs' credentials are derived
    from; `clock` gives Unix seconds.
    """

    client: Client
    pods: PodIndex
    store: RankStore
    setting: Setting
    authority: Callable[[], str]
    seed: Callable[[], bytes]
    clock: Callable[[], float]
    _children: Children = field(init=False)
    _creation: Creation = field(init=False)
    _listening_since: float = field(init=False)
    _ledgers: dict[str, Ledger] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._children = Children(self.client, self.setting, self.authority)
        self._creation = Creation(self.client, self.pods, self.store, self.setting, self._children, self.clock)
        self._listening_since = self.clock()

    def forget(self, job_uid: str) -> None:
        """The job's resource is gone."""
        self._ledgers.pop(job_uid, None)
        self.pods.forget(job_uid)

    async def observe(self, job: Job) -> JobFacts:
        """What is known of the job's pods now. Raises `ApiError`."""
        uid, ledger = job.metadata.uid, self._ledger(job)
        await self._look_for_untold(job)
        nodes = [one async for one in self._observed_nodes(job, ledger)]
        strays = self.pods.strays(uid, job.spec.nodes)
        there = (known for known in self.pods.of(uid) if not self._is_past(known, ledger))
        facts = JobFacts(
            # The API server's clock may be ahead of this one, and then the job would begin in the future.
            created_at=min(from_text(job.metadata.creation_timestamp), ledger.known_since),
            nodes=tuple(node for node, _ in nodes),
            heartbeat_seconds=heartbeat_seconds(self.store.agents()),
            refusal=ledger.refusal(job.metadata.generation),
            strays=tuple(known.pod.name for known in strays if not self._is_past(known, ledger)),
            outdated=any(known.pod.spec_hash != ledger.spec_hash(job) for known in there),
            listening_since=self._listening_since,
        )
        return self._with_lost(ledger, facts, [last for _, last in nodes])

    def _with_lost(self, ledger: Ledger, facts: JobFacts, pods: Sequence[PodEntry | None]) -> JobFacts:
        """Remember which nodes are lost: an agent that is heard later changes nothing any more."""
        nodes = list(facts.nodes)
        for index, (node, last) in enumerate(zip(facts.nodes, pods, strict=True)):
            at = lost_at(node, facts)
            if at is not None and last is not None and self.clock() >= at:
                ledger.lost.setdefault(last.pod.uid, at)
                nodes[index] = replace(node, process=replace(node.process, lost_at=at))
        return replace(facts, nodes=tuple(nodes))

    def _is_past(self, entry: PodEntry, ledger: Ledger) -> bool:
        """Whether a pod is only there because its machine doesn't delete it: nothing waits for that any more."""
        gone_by = entry.observations.gone_by
        return gone_by is not None and (entry.pod.uid in ledger.lost or self.clock() >= gone_by + LOST_SECONDS)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided. Raises `ApiError` when a part of it is to be tried again."""
        ledger = self._ledger(job)
        requests = self._upkeep(job, ledger, actions)
        for action in actions:
            match action:
                case CreateNode():
                    pass  # together with the others of its kind: what one is refused for, the next is, too
                case SendCommand():
                    self._send(job, ledger, action)
                case KillNode():
                    requests += self._removals(job, ledger, action.node, KILL_GRACE_SECONDS)
                case RemoveNode():
                    requests += self._removals(job, ledger, action.node, whole_seconds(action.grace_seconds))
                case RemoveStray():
                    requests.append(self._remove_stray(job, ledger, action))
                case DeleteResource():
                    requests.append(self._delete_resource(job))
                case _:
                    assert_never(action)
        # None of them waits for another, and each is heard although one fails.
        results = await asyncio.gather(*requests, return_exceptions=True)
        for result in results:
            if result is not None:
                raise result

    def _upkeep(self, job: Job, ledger: Ledger, actions: Sequence[Action]) -> list[Awaitable[None]]:
        creates = [action for action in actions if isinstance(action, CreateNode)]
        if creates:
            return [self._creation.create(job, ledger, creates)]
        # The job is being deleted: send its agents nothing, and create nothing.
        if any(isinstance(action, DeleteResource) for action in actions):
            return []
        return [self._refresh(job, ledger)]

    def _ledger(self, job: Job) -> Ledger:
        self.pods.expect(job.metadata.uid, job.metadata.namespace)
        uid = job.metadata.uid
        if uid not in self._ledgers:
            self._ledgers[uid] = Ledger(known_since=self.clock())
        return self._ledgers[uid]

    async def _observed_nodes(self, job: Job, ledger: Ledger) -> AsyncIterator[tuple[NodeFacts, PodEntry | None]]:
        """Each node, and its pod as it was last seen."""
        for node in range(job.spec.nodes):
            # Of a large job some nodes are seen a moment later than others, as it is with what their agents say.
            if node and node % NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
            yield self._node(job, ledger, node), self.pods.last(job.metadata.uid, node)

    def _node(self, job: Job, ledger: Ledger, node: int) -> NodeFacts:
        uid = job.metadata.uid
        agent = self.store.agent(uid, node)
        last = self.pods.last(uid, node)
        sent = ledger.sent.get(node)
        # A replaced pod has heard nothing of what its predecessor was told.
        if sent is not None and (last is None or last.pod.uid != sent.pod_uid):
            sent = None
        return NodeFacts(
            node=node,
            name=f"{job.metadata.name}-{node}",
            process=as_heard(self._process(job, ledger, node, last), agent, _ended_by(last)),
            agent=agent,
            command=None if sent is None else sent.command,
            commanded_at=None if sent is None else sent.at,
        )

    def _process(self, job: Job, ledger: Ledger, node: int, last: PodEntry | None) -> ProcessFacts:
        replacement = max(self.pods.highest(job.metadata.uid, node), ledger.taken.get(node, -1))
        if last is None:
            return ProcessFacts(ProcessState.MISSING, replacement, problem=ledger.held.get(node))
        process = last.process
        if self.pods.newest(job.metadata.uid, node) is None:
            process = missing_process(process, replacement, last.observations.looked_at)
        problem, removal = process.problem, ledger.removed.get(last.pod.uid)
        if problem is not None and removal is not None and is_own_doing(problem, last.process.ended_at, removal.at):
            problem = None
        # That its successor can't be made is the newer problem.
        if process.state is ProcessState.MISSING:
            problem = ledger.held.get(node, problem)
        return replace(process, problem=problem, lost_at=ledger.lost.get(last.pod.uid))

    async def _look_for_untold(self, job: Job) -> None:
        """Ask for pods that the informer should have told of by now: one that came and went unseen is told by nobody.

        Raises `ApiError`.
        """
        for known in self.pods.untold(job.metadata.uid):
            if known.untold_since is None or self.clock() < known.untold_since + UNTOLD_SECONDS:
                continue
            try:
                stored = read_pod(await self.client.get(PODS, job.metadata.namespace, known.pod.name))
            except ApiError as error:
                if not error.is_not_found:
                    raise
                stored = None
            if stored is None or stored.uid != known.pod.uid:
                self.pods.lost(known.pod)
            if stored is not None and stored.job_uid == job.metadata.uid:
                self.pods.adopt(stored, self.clock())

    def _send(self, job: Job, ledger: Ledger, action: SendCommand) -> None:
        command = with_credentials(job, action.command, self.seed())
        for node in action.nodes:
            entry = self.pods.newest(job.metadata.uid, node)
            if entry is None:
                continue
            before = ledger.sent.get(node)
            if before is None or (before.pod_uid, before.command) != (entry.pod.uid, action.command):
                ledger.sent[node] = Sent(entry.pod.uid, action.command, self.clock())
            self.store.send(job.metadata.uid, node, command)

    def _removals(self, job: Job, ledger: Ledger, node: int, grace_seconds: int) -> list[Awaitable[None]]:
        entry = self.pods.newest(job.metadata.uid, node)
        return [] if entry is None else [self._remove(ledger, entry.pod, grace_seconds)]

    async def _remove_stray(self, job: Job, ledger: Ledger, action: RemoveStray) -> None:
        for known in self.pods.strays(job.metadata.uid, job.spec.nodes):
            if known.pod.name == action.name:
                await self._remove(ledger, known.pod, KILL_GRACE_SECONDS)

    async def _remove(self, ledger: Ledger, pod: PodView, grace_seconds: int) -> None:
        # The cluster takes its time, and the plan asks again as long as the pod is there.
        if ledger.is_removed(pod, grace_seconds, self.clock()):
            return
        ledger.removed[pod.uid] = Removal(self.clock(), grace_seconds)
        try:
            await self.client.delete(PODS, pod.namespace, pod.name, uid=pod.uid, grace_seconds=grace_seconds)
        except ApiError:
            del ledger.removed[pod.uid]
            raise

    async def _delete_resource(self, job: Job) -> None:
        metadata = job.metadata
        await self.client.delete(JOBS, metadata.namespace, metadata.name, uid=metadata.uid)

    async def _refresh(self, job: Job, ledger: Ledger) -> None:
        """Tell agents that are at work whom to trust from now on: they read it from the ConfigMap."""
        authority = self.authority()
        present = self._present(job)
        if not present or (authority == ledger.authority and not any(_lacks_config_map(job, one) for one in present)):
            return
        # What is in its way then was said when the pods were made, and agents trust the older one for a while.
        await self._children.make_config_map(job)
        ledger.authority = authority

    def _present(self, job: Job) -> tuple[ProcessFacts, ...]:
        """The nodes that are at work, or will be."""
        newest = (self.pods.newest(job.metadata.uid, node) for node in range(job.spec.nodes))
        processes = (known.process for known in newest if known is not None)
        return tuple(process for process in processes if process.state is not ProcessState.EXITED)


def _ended_by(last: PodEntry | None) -> float | None:
    """When the operator saw that the pod's container had ended."""
    return None if last is None or last.observations.ended is None else last.observations.ended.at


def _lacks_config_map(job: Job, process: ProcessFacts) -> bool:
    """Whether the job's own ConfigMap was deleted before the pod had mounted it."""
    problem = process.problem
    if problem is None or problem.reason != CONFIG_MISSING:
        return False
    return f" {children_name(job.metadata.name)} " in problem.message


def whole_seconds(grace: float) -> int:
    """A grace as the API server takes it."""
    return max(KILL_GRACE_SECONDS, math.ceil(grace))

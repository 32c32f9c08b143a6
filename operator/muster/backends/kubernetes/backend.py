"""Run a job's nodes as pods: observe the pods, and execute actions."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from muster.api.spec.job import Job
from muster.api.timestamps import parse_timestamp
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.backends.kubernetes.children import ChildObjects, add_service_selector, refresh_config_maps
from muster.backends.kubernetes.edited_sources import NO_MEMORY, EditedSources
from muster.backends.kubernetes.job_state import JobState, PodDeletion, SentCommand
from muster.backends.kubernetes.kube_node_taints import KubeNodeTaints, make_without_taints
from muster.backends.kubernetes.pod_creator import UNCONFIRMED_SECONDS, PodCreator
from muster.backends.kubernetes.pod_index import PodEntry, PodIndex
from muster.clients.kubernetes.client import Client
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import add_credentials
from muster.core.actions import Action, CreateNode, DeleteResource, KillNode, RemoveNode, RemoveSurplusPod, SendCommand
from muster.core.edited_source import RequestedSource
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.problems import LOST_SECONDS, find_loss_time
from muster.core.failure_timeouts import get_fence_seconds
from muster.core.world import count_nodes_and_spares
from muster.diagnose.kubernetes.node_facts import apply_agent_report, build_missing_process, is_caused_by_muster
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, PODS
from muster.objects.kubernetes.pods import JOB_PODS, PodView, read_pod
from muster.render.kubernetes.pod_settings import PodSettings
from muster_worker.contract.schema import CommandKind

_log = logging.getLogger(__name__)

KILL_GRACE_SECONDS = 1
"""The minimum: with 0, the API server deletes a pod without waiting until its processes have ended."""

NODES_PER_SLICE = 500
"""Other tasks run after each slice of nodes. A slice takes about 10 ms."""


@dataclass
class KubernetesBackend:
    """The pods of all jobs, while this replica is the leader.

    `get_ca_bundle` returns the CA certificates for agents, as PEM. `seed` returns the secret from which the agents'
    credentials are derived. `clock` returns Unix seconds.
    """

    client: Client
    pods: PodIndex
    store: RankStore
    pod_settings: PodSettings
    get_ca_bundle: Callable[[], str]
    seed: Callable[[], bytes]
    clock: Callable[[], float]
    taints: KubeNodeTaints = field(default_factory=make_without_taints)
    _children: ChildObjects = field(init=False)
    _sources: EditedSources = field(init=False)
    _pod_creator: PodCreator = field(init=False)
    _collector_started_at: float = field(init=False)
    _job_states: dict[str, JobState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        agent_config_maps = AgentConfigMaps(
            self.client, self.pod_settings.agent_config_map, self._job_states.__contains__
        )
        self._children = ChildObjects(self.client, self.pod_settings, agent_config_maps, self.get_ca_bundle)
        self._sources = EditedSources(self.client, self.clock)
        self._pod_creator = PodCreator(
            self.client, self.pods, self.store, self.pod_settings, self._children, self.clock
        )
        self._collector_started_at = self.clock()

    def forget(self, job_uid: str) -> None:
        """Drop the state of a deleted job."""
        self._job_states.pop(job_uid, None)
        self.pods.forget(job_uid)

    async def observe(self, job: Job) -> JobFacts:
        """Observe the job's pods. Raises `ApiError`."""
        uid, job_state = job.metadata.uid, self._get_job_state(job)
        await self._fetch_unconfirmed(job)
        nodes = [pair async for pair in self._observe_nodes(job, job_state)]
        surplus = self.pods.list_surplus_pods(uid, count_nodes_and_spares(job))
        existing = (pod_entry for pod_entry in self.pods.list_pods(uid) if not self._is_lost(pod_entry, job_state))
        facts = JobFacts(
            # The API server's clock may be ahead of this one: a job must not start in the future.
            created_at=min(parse_timestamp(job.metadata.creation_timestamp), job_state.first_seen_at),
            nodes=tuple(node for node, _ in nodes),
            heartbeat_seconds=self.store.get_heartbeat_seconds(job.metadata.namespace),
            refusal=job_state.find_refusal(job.metadata.generation),
            surplus_pods=tuple(entry.pod.name for entry in surplus if not self._is_lost(entry, job_state)),
            has_outdated_pods=any(
                pod_entry.pod.spec_hash != job_state.compute_spec_hash(job) for pod_entry in existing
            ),
            collector_started_at=self._collector_started_at,
            problem=job_state.source_problem,
            fence_seconds=get_fence_seconds(job),
        )
        return self._mark_lost_nodes(job_state, facts, [last_pod for _, last_pod in nodes])

    def _mark_lost_nodes(self, job_state: JobState, facts: JobFacts, pods: Sequence[PodEntry | None]) -> JobFacts:
        """Record which nodes are lost. A lost node stays lost, even if its agent reports again."""
        nodes = list(facts.nodes)
        for index, (node, last_pod) in enumerate(zip(facts.nodes, pods, strict=True)):
            lost_since = find_loss_time(node, facts)
            if lost_since is not None and last_pod is not None and self.clock() >= lost_since:
                job_state.lost_since.setdefault(last_pod.pod.uid, lost_since)
                nodes[index] = replace(node, process=replace(node.process, lost_at=lost_since))
        return replace(facts, nodes=tuple(nodes))

    def _is_lost(self, entry: PodEntry, job_state: JobState) -> bool:
        """Whether a deleted pod exists only because its Kubernetes node is silent. Callers don't wait for its end."""
        deletion_deadline = entry.observations.deletion_deadline
        return deletion_deadline is not None and (
            entry.pod.uid in job_state.lost_since or self.clock() >= deletion_deadline + LOST_SECONDS
        )

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Execute the actions. Raises `ApiError` if some of them need a retry."""
        job_state = self._get_job_state(job)
        job_state.expect_service_missing(_find_started_attempt(actions))
        requests = [
            *self._create_or_refresh(job, job_state, actions),
            add_service_selector(job, job_state, self.pods, self._children),
        ]
        for action in actions:
            match action:
                case CreateNode():
                    pass  # `_create_or_refresh` creates all pods together, because one refusal applies to all
                case SendCommand():
                    requests.append(self._send(job, job_state, action))
                case KillNode():
                    requests += self._delete_node(job, job_state, action.node, KILL_GRACE_SECONDS, action.why)
                case RemoveNode():
                    grace_seconds = round_seconds(action.grace_seconds)
                    requests += self._delete_node(job, job_state, action.node, grace_seconds, action.why)
                case RemoveSurplusPod():
                    requests.append(self._delete_surplus_pod(job, job_state, action))
                case DeleteResource():
                    requests.append(self._delete_resource(job))
                case _:
                    assert_never(action)
        # Send all requests concurrently, and wait for all even if one fails.
        results = await asyncio.gather(*requests, return_exceptions=True)
        for result in results:
            if result is not None:
                raise result

    def _create_or_refresh(self, job: Job, job_state: JobState, actions: Sequence[Action]) -> list[Awaitable[None]]:
        creates = [action for action in actions if isinstance(action, CreateNode)]
        if creates:
            return [self._pod_creator.create(job, job_state, creates)]
        # The job is being deleted: don't update its ConfigMaps.
        if any(isinstance(action, DeleteResource) for action in actions):
            return []
        return [refresh_config_maps(job, job_state, self.pods, self._children)]

    def _get_job_state(self, job: Job) -> JobState:
        self.pods.expect(job.metadata.uid, job.metadata.namespace)
        uid = job.metadata.uid
        if uid not in self._job_states:
            self._job_states[uid] = JobState(first_seen_at=self.clock())
        return self._job_states[uid]

    async def _observe_nodes(self, job: Job, job_state: JobState) -> AsyncIterator[tuple[NodeFacts, PodEntry | None]]:
        """Yield each node and its last pod."""
        for node in range(count_nodes_and_spares(job)):
            # Let other tasks run between two slices of a large job.
            if node and node % NODES_PER_SLICE == 0:
                await asyncio.sleep(0)
            yield self._build_node(job, job_state, node), self.pods.get_last_pod(job.metadata.uid, node)

    def _build_node(self, job: Job, job_state: JobState, node: int) -> NodeFacts:
        agent, last_pod = self.store.get_agent(job.metadata.uid, node), self.pods.get_last_pod(job.metadata.uid, node)
        sent_command = job_state.sent_commands.get(node)
        # The command was sent to the previous pod, and the pod that replaces it has not received it.
        if sent_command is not None and (last_pod is None or last_pod.pod.uid != sent_command.pod_uid):
            sent_command = None
        process = self._build_process(job, job_state, node, last_pod)
        return NodeFacts(
            node=node,
            name=f"{job.metadata.name}-{node}",
            process=apply_agent_report(process, agent, _get_end_time(last_pod)),
            agent=agent,
            command=None if sent_command is None else sent_command.command,
            command_sent_at=None if sent_command is None else sent_command.at,
        )

    def _build_process(self, job: Job, job_state: JobState, node: int, last_pod: PodEntry | None) -> ProcessFacts:
        replacement = max(
            self.pods.get_highest_replacement_number(job.metadata.uid, node),
            job_state.taken_replacement_numbers.get(node, -1),
        )
        if last_pod is None:
            return ProcessFacts(ProcessState.MISSING, replacement, problem=job_state.pod_problems.get(node))
        process = last_pod.process
        if self.pods.get_newest_pod(job.metadata.uid, node) is None:
            process = build_missing_process(process, replacement, last_pod.observations.observed_at)
        problem, deletion = process.problem, job_state.deletions.get(last_pod.pod.uid)
        if (
            problem is not None
            and deletion is not None
            and is_caused_by_muster(problem, last_pod.process.ended_at, deletion.at)
        ):
            problem = None
        # The refusal of the next pod is newer than the problem of the last pod.
        if process.state is ProcessState.MISSING:
            problem = job_state.pod_problems.get(node, problem)
        process = replace(process, problem=problem, lost_at=job_state.lost_since.get(last_pod.pod.uid))
        return job_state.keep_disruption(last_pod.pod.uid, self.taints.add_announcement(last_pod.pod, process))

    async def _fetch_unconfirmed(self, job: Job) -> None:
        """Read created pods that the informer has not reported. Raises `ApiError`.

        The informer may never report a pod that was deleted right after its creation.
        """
        for pod_entry in self.pods.list_unconfirmed_pods(job.metadata.uid):
            if pod_entry.unconfirmed_since is None or self.clock() < pod_entry.unconfirmed_since + UNCONFIRMED_SECONDS:
                continue
            try:
                stored = read_pod(await self.client.get(JOB_PODS, job.metadata.namespace, pod_entry.pod.name))
            except ApiError as error:
                if not error.is_not_found:
                    raise
                stored = None
            if stored is None or stored.uid != pod_entry.pod.uid:
                self.pods.remove_unconfirmed(pod_entry.pod)
            if stored is not None and stored.job_uid == job.metadata.uid:
                self.pods.add_created(stored, self.clock())

    async def find_source(self, job: Job, name: str) -> RequestedSource:
        """Find the edited code in ConfigMap `name`. Raises `ApiError`."""
        return await self._sources.find(job, self._get_job_state(job), name)

    async def _send(self, job: Job, job_state: JobState, action: SendCommand) -> None:
        """Send a command, a Start with the edited code that the status names. Raises `ApiError`."""
        command = await self._sources.add_source(job, job_state, action.command)
        if command is None:
            return
        command = add_credentials(job, command, self.seed())
        for node in action.nodes:
            entry = self.pods.get_newest_pod(job.metadata.uid, node)
            if entry is None:
                continue
            if not self.store.set_command(job.metadata.uid, node, command):
                job_state.source_problem = NO_MEMORY
                return
            # Record the command without the code, which is large.
            job_state.record_command(node, SentCommand(entry.pod.uid, action.command, self.clock()))

    def _delete_node(
        self, job: Job, job_state: JobState, node: int, grace_seconds: int, why: str
    ) -> list[Awaitable[None]]:
        entry = self.pods.get_newest_pod(job.metadata.uid, node)
        return [] if entry is None else [self._delete_pod(job_state, entry.pod, grace_seconds, why)]

    async def _delete_surplus_pod(self, job: Job, job_state: JobState, action: RemoveSurplusPod) -> None:
        for pod_entry in self.pods.list_surplus_pods(job.metadata.uid, count_nodes_and_spares(job)):
            if pod_entry.pod.name == action.name:
                await self._delete_pod(job_state, pod_entry.pod, KILL_GRACE_SECONDS, "the job has no such node")

    async def _delete_pod(self, job_state: JobState, pod: PodView, grace_seconds: int, why: str) -> None:
        # `decide` repeats the action as long as the pod exists.
        if job_state.is_deletion_pending(pod, grace_seconds, self.clock()):
            return
        job_state.deletions[pod.uid] = PodDeletion(self.clock(), grace_seconds)
        _log.info("%s: muster deletes the pod %s: %s", pod.namespace, pod.name, why)
        try:
            await self.client.delete(PODS, pod.namespace, pod.name, uid=pod.uid, grace_seconds=grace_seconds)
        except ApiError:
            del job_state.deletions[pod.uid]
            raise

    async def _delete_resource(self, job: Job) -> None:
        metadata = job.metadata
        await self.client.delete(JOBS, metadata.namespace, metadata.name, uid=metadata.uid)


def _find_started_attempt(actions: Sequence[Action]) -> int:
    """Return the attempt that the actions start; 0 if they start none."""
    commands = (action.command for action in actions if isinstance(action, SendCommand))
    return max((command.attempt for command in commands if command.kind == CommandKind.START), default=0)


def _get_end_time(last_pod: PodEntry | None) -> float | None:
    """Return when the operator observed the end of the pod's container."""
    return None if last_pod is None or last_pod.observations.end is None else last_pod.observations.end.at


def round_seconds(grace: float) -> int:
    """Round a grace period for the API server."""
    return max(KILL_GRACE_SECONDS, math.ceil(grace))

"""Create a job's pods: first one, then all others. Refusals become problems of the job or of its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.backends.kubernetes.children import ChildObjects
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.fair_slots import FairSlots
from muster.collector.store import RankStore
from muster.core.actions import CreateNode
from muster.core.problem import Problem
from muster.diagnose.kubernetes.refusals import Refusal, build_deletion_wait, build_name_conflict, read_refusal
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS, Object
from muster.objects.kubernetes.names import build_pod_name
from muster.objects.kubernetes.pods import JOB_PODS, read_pod
from muster.render.kubernetes import render
from muster.render.kubernetes.kueue import choose_group_number
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_copy import copy_pod
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.user_patches import group_equal_nodes

MAX_CONCURRENT_CREATES = 64
"""The maximum number of concurrent requests of the client."""

UNCONFIRMED_SECONDS = 10.0
"""If the informer has not reported a new pod after this long, the pod may already be deleted."""


@dataclass
class _Batch:
    """Pods of one job that are created together. `refusal` applies to all of them.

    `equal_nodes` are groups of nodes with equal pods, `group_number` is the group of all of them in Kueue.
    """

    job: Job
    job_state: JobState
    equal_nodes: Sequence[Sequence[int]]
    group_number: int
    node_problems: dict[int, Problem] = field(default_factory=dict)
    refusal: Refusal | None = None
    _rendered: dict[tuple[int, tuple[str, ...]], Object] = field(default_factory=dict)
    _group_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._group_of = {node: group for group, nodes in enumerate(self.equal_nodes) for node in nodes}

    def make_pod(self, action: CreateNode, pod_settings: PodSettings) -> Object:
        """Return the pod. Raises `NotRenderable`."""
        job, key = self.job, self._get_variant(action)
        if key not in self._rendered:
            self._rendered[key] = render.render_pod(
                job,
                action.node,
                action.replacement,
                pod_settings,
                action.avoided_nodes,
                group_number=self.group_number,
            )
        return copy_pod(self._rendered[key], job.metadata.name, action.node, action.replacement)

    def has_rendered(self, action: CreateNode) -> bool:
        """Whether `make_pod` only copies a pod."""
        return self._get_variant(action) in self._rendered

    def _get_variant(self, action: CreateNode) -> tuple[int, tuple[str, ...]]:
        """Return what the pods have in common that differ only in the node: their overrides and the avoided nodes."""
        # The groups contain no spares.
        return self._group_of.get(action.node, -1 - action.node), tuple(action.avoided_nodes)


@dataclass
class PodCreator:
    """Creates the pods of all jobs. `clock` returns Unix seconds."""

    client: Client
    pods: PodIndex
    store: RankStore
    pod_settings: PodSettings
    children: ChildObjects
    clock: Callable[[], float]
    _slots: FairSlots = field(default_factory=lambda: FairSlots(MAX_CONCURRENT_CREATES))
    _rendering: FairSlots = field(default_factory=lambda: FairSlots(1))

    async def create(self, job: Job, job_state: JobState, actions: Sequence[CreateNode]) -> None:
        """Create these nodes' pods, and the objects that they need. Raises `ApiError` for requests to retry.

        Refusals are stored in `job_state`; until the backoff ends, this does nothing.
        """
        generation = job.metadata.generation
        if job_state.find_refusal(generation) is not None or self.clock() < job_state.backoff_until:
            return
        taken_numbers = dict(job_state.taken_replacement_numbers)
        before = (job_state.find_refusal(generation), dict(job_state.pod_problems), taken_numbers)
        batch = _Batch(job, job_state, group_equal_nodes(job), self._choose_group_number(job, actions))
        batch.refusal = await self._prepare(batch, actions)
        failures: list[ApiError] = []
        if batch.refusal is None:
            failures = await self._create_all(batch, actions)
        self._record_refusals(job_state, batch, actions)
        if before != (job_state.find_refusal(generation), job_state.pod_problems, job_state.taken_replacement_numbers):
            self.pods.on_change(job.metadata.uid)
        asyncio.get_running_loop().call_later(UNCONFIRMED_SECONDS, self._check_unconfirmed, job.metadata.uid)
        # Raise a failed request only after all responses are handled.
        if failures:
            raise failures[0]

    def _choose_group_number(self, job: Job, actions: Sequence[CreateNode]) -> int:
        pods = (entry.pod for entry in self.pods.list_pods(job.metadata.uid))
        return choose_group_number(job, pods, (action.replacement for action in actions))

    async def _prepare(self, batch: _Batch, actions: Sequence[CreateNode]) -> Refusal | None:
        job, job_state = batch.job, batch.job_state
        # Volcano refuses pods without their group.
        refusal = await self.children.write_pod_group(job)
        if refusal is not None:
            return refusal
        if not job_state.has_accepted_pods(job.metadata.generation):
            refusal = await self._check_variants(batch, {action.node: action for action in actions})
            if refusal is not None:
                return refusal
        ca_bundle = self.children.get_ca_bundle()
        if any(action.replacement > 0 for action in actions):
            # A user may have deleted it since the first pods mounted it.
            await self.children.agent_config_maps.check(job.metadata.namespace)
        refusal = await self.children.write_service_and_config_maps(job)
        if refusal is None:
            job_state.ca_bundle = ca_bundle
            # A user may have deleted the Service: then this is a new one.
            job_state.service_has_selector = False
        return refusal

    async def _check_variants(self, batch: _Batch, actions: dict[int, CreateNode]) -> Refusal | None:
        """Create one pod of each variant (see `nodeOverrides`) as a dry run, because the job needs all its pods.

        Only render the first pod, because muster creates it before all others.
        """
        job, first_node = batch.job, next(iter(actions))
        for nodes in batch.equal_nodes:
            action = next((actions[node] for node in nodes if node in actions), None)
            if action is None:
                continue
            try:
                body = await self._render(batch, action)
                if action.node != first_node:
                    await self.client.dry_run_create(PODS, job.metadata.namespace, body)
            except NotRenderable as error:
                return Refusal(error.problem, is_final=True)
            except ApiError as error:
                # The real request finds out whether the existing pod belongs to the job.
                if not error.already_exists:
                    return _read_refusal(error, body, job)
        return None

    async def _create_all(self, batch: _Batch, actions: Sequence[CreateNode]) -> list[ApiError]:
        remaining_actions, failures = iter(actions), list[ApiError]()
        if not batch.job_state.has_accepted_pods(batch.job.metadata.generation):
            # If the API server refuses the first pod, the others are not sent.
            await self._create_some(batch, islice(remaining_actions, 1), failures)
            if failures or batch.refusal is not None:
                return failures
            batch.job_state.record_accepted_pods(batch.job.metadata.generation)
        # One task for each slot, not for each pod: it takes long to start 10,000 tasks.
        tasks = (
            self._create_some(batch, remaining_actions, failures)
            for _ in range(min(MAX_CONCURRENT_CREATES, len(actions)))
        )
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if result is not None:
                raise result
        return failures

    async def _create_some(
        self, batch: _Batch, remaining_actions: Iterator[CreateNode], failures: list[ApiError]
    ) -> None:
        for action in remaining_actions:
            # A refusal of one pod applies to all.
            if batch.refusal is not None:
                return
            try:
                await self._create_one(batch, action)
            except ApiError as error:
                failures.append(error)

    async def _create_one(self, batch: _Batch, action: CreateNode) -> None:
        async with self._slots.slot(batch.job.metadata.namespace):
            # A refusal of one pod applies to all.
            if batch.refusal is not None:
                return
            job, namespace = batch.job, batch.job.metadata.namespace
            # Drop the previous pod's reports and commands.
            if action.replacement > 0:
                self.store.reset_node(job.metadata.uid, action.node)
            body = await self._render(batch, action)
            name = build_pod_name(job.metadata.name, action.node, action.replacement)
            try:
                created = await self.client.create(JOB_PODS, namespace, body)
            except ApiError as error:
                if not error.already_exists:
                    batch.refusal = _read_refusal(error, body, job)
                    return
                # An earlier request, without a response, or the previous leader created the pod.
                created = await self.client.get(JOB_PODS, namespace, name)
            pod = read_pod(created)
            if pod is not None and pod.job_uid == job.metadata.uid:
                self.pods.add_created(pod, self.clock())
            elif pod is not None and batch.job_state.is_leftover(pod, self.clock()):
                batch.job_state.taken_replacement_numbers[action.node] = action.replacement
            else:
                build_problem = build_deletion_wait if _is_being_deleted(created) else build_name_conflict
                batch.node_problems[action.node] = build_problem("Pod", name, namespace)

    async def _render(self, batch: _Batch, action: CreateNode) -> Object:
        """Render a node's pod. Each iteration of the event loop renders only one pod."""
        if batch.has_rendered(action):
            return batch.make_pod(action, self.pod_settings)
        async with self._rendering.slot(batch.job.metadata.namespace):
            await asyncio.sleep(0)
            return batch.make_pod(action, self.pod_settings)

    def _record_refusals(self, job_state: JobState, batch: _Batch, actions: Sequence[CreateNode]) -> None:
        refusal = batch.refusal
        if refusal is not None and refusal.is_final:
            job_state.record_refusal(batch.job.metadata.generation, refusal.problem)
            return
        missing = [
            action.node for action in actions if self.pods.get_newest_pod(batch.job.metadata.uid, action.node) is None
        ]
        problems = dict.fromkeys(missing, refusal.problem) if refusal is not None else {}
        job_state.record_problems({**problems, **batch.node_problems}, self.clock())

    def _check_unconfirmed(self, job_uid: str) -> None:
        if self.pods.list_unconfirmed_pods(job_uid):
            self.pods.on_change(job_uid)


def _is_being_deleted(stored: Object) -> bool:
    return read_mapping(stored.get("metadata")).get("deletionTimestamp") is not None


def _read_refusal(error: ApiError, body: Object, job: Job) -> Refusal:
    refusal = read_refusal(error, body, job)
    if refusal is None:
        raise error
    return refusal

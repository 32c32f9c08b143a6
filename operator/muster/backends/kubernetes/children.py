"""Create and keep a job's Service, ConfigMap and PodGroup. Kubernetes deletes them together with the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodEntry, PodIndex
from muster.clients.kubernetes.client import Client
from muster.core.facts import ProcessFacts, ProcessState
from muster.core.problem import Problem
from muster.core.world import count_nodes_and_spares
from muster.diagnose.kubernetes.refusals import Refusal, build_name_conflict, read_refusal
from muster.diagnose.kubernetes.start_problems import CONFIG_MISSING
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, SERVICES, Kind, Object
from muster.objects.kubernetes.names import build_children_name
from muster.objects.kubernetes.pods import read_owner_uid
from muster.render.agent_plan import render_plan
from muster.render.kubernetes import render
from muster.render.kubernetes.gang import PodGroup, render_pod_group
from muster.render.kubernetes.pod_settings import PodSettings

QUEUE_NOT_INSTALLED = "QueueNotInstalled"


@dataclass(frozen=True)
class ChildObjects:
    """`get_ca_bundle` returns the CA certificates for agents, as PEM. All methods raise `ApiError`."""

    client: Client
    pod_settings: PodSettings
    agent_config_maps: AgentConfigMaps
    get_ca_bundle: Callable[[], str]

    async def write_service_and_config_maps(self, job: Job) -> Refusal | None:
        """Create or update the Service and the ConfigMaps. Return the refusal, if any."""
        service, config_map, agent_config_map = await asyncio.gather(
            self.write_service(job),
            self.write_config_map(job),
            self.agent_config_maps.make(job),
        )
        return service or config_map or agent_config_map

    async def write_service(self, job: Job) -> Refusal | None:
        """Create the Service without a selector if it is missing. Return the refusal, if any."""
        return await self._create_or_update(job, SERVICES, render.render_service(job))

    async def write_config_map(self, job: Job) -> Refusal | None:
        """Create or update the ConfigMap with the current plan. Return the refusal, if any."""
        plan = render_plan(job, self.pod_settings.collector_url, self.get_ca_bundle())
        return await self._create_or_update(job, CONFIG_MAPS, render.render_config_map(job, plan))

    async def write_pod_group(self, job: Job) -> Refusal | None:
        """Create or update the PodGroup, if the job's queue needs one. Return the refusal, if any."""
        group = render_pod_group(job)
        if group is None:
            return None
        try:
            refusal = await self._create_or_update(job, group.kind, group.body)
        except ApiError as error:
            # "Not found" means that the cluster doesn't have this kind.
            if not error.is_not_found:
                raise
            problem = f"the cluster has no {group.kind.plural}.{group.kind.group}, which spec.queue needs: install"
            return Refusal(Problem(QUEUE_NOT_INSTALLED, f"{problem} its scheduler, or choose another queue"))
        if refusal is None:
            await self._update_pod_group(job, group)
        return refusal

    async def _update_pod_group(self, job: Job, group: PodGroup) -> None:
        """Update the PodGroup if the job's spec has changed; keep the fields that the scheduler added."""
        namespace, name = job.metadata.namespace, build_children_name(job.metadata.name)
        spec = read_mapping(group.body["spec"])
        stored = read_mapping((await self.client.get(group.kind, namespace, name)).get("spec"))
        if any(stored.get(field) != value for field, value in spec.items()):
            await self.client.merge(group.kind, namespace, name, {"spec": dict(spec)})

    async def _create_or_update(self, job: Job, kind: Kind, body: Object) -> Refusal | None:
        namespace, name = job.metadata.namespace, build_children_name(job.metadata.name)
        try:
            await self.client.create_large(kind, namespace, body)
        except ApiError as error:
            if not error.already_exists:
                refusal = read_refusal(error, body, job)
                if refusal is None:
                    raise
                return refusal
        else:
            return None
        stored = await self.client.get(kind, namespace, name)
        if read_owner_uid(stored) != job.metadata.uid:
            return Refusal(build_name_conflict(kind.name, name, namespace))
        if stored.get("data") != body.get("data"):
            await self.client.merge(kind, namespace, name, {"data": body["data"]})
        return None


async def refresh_config_maps(job: Job, job_state: JobState, pods: PodIndex, children: ChildObjects) -> None:
    """Write the ConfigMaps that were deleted, and the job's own one if the CA certificates have changed.

    Running agents read the CA certificates from the job's own ConfigMap. Raises `ApiError`.
    """
    processes = tuple(entry.process for entry in _list_active_pods(job, pods))
    if not processes:
        return
    # Ignore refusals: a pod shows that its ConfigMap is missing, and agents trust the previous CA for a while.
    await _refresh_config_map(job, job_state, processes, children)
    await _refresh_agent_config_map(job, processes, children)


async def _refresh_config_map(
    job: Job, job_state: JobState, processes: tuple[ProcessFacts, ...], children: ChildObjects
) -> None:
    ca_bundle, name = children.get_ca_bundle(), build_children_name(job.metadata.name)
    if ca_bundle != job_state.ca_bundle or any(_lacks_config_map(process, name) for process in processes):
        await children.write_config_map(job)
        job_state.ca_bundle = ca_bundle


async def _refresh_agent_config_map(job: Job, processes: tuple[ProcessFacts, ...], children: ChildObjects) -> None:
    name = children.agent_config_maps.name
    if any(_lacks_config_map(process, name) for process in processes):
        children.agent_config_maps.expect_missing(job.metadata.namespace)
    await children.agent_config_maps.make(job)


def _lacks_config_map(process: ProcessFacts, name: str) -> bool:
    """Whether a user deleted this ConfigMap before the pod mounted it."""
    problem = process.problem
    return problem is not None and problem.reason == CONFIG_MISSING and f" {name} " in problem.message


async def add_service_selector(job: Job, job_state: JobState, pods: PodIndex, children: ChildObjects) -> None:
    """Add the Service's selector once as many pods have an address as an attempt needs. Raises `ApiError`.

    With an earlier selector, Kubernetes would write the Service's endpoints again whenever a pod gets its address. If a
    user has deleted the Service, create it again.
    """
    if job_state.service_has_selector:
        return
    # No pod looks up the names of pods that have ended.
    if sum(entry.pod.ip != "" for entry in _list_active_pods(job, pods)) < job.spec.min_nodes:
        return
    await _merge_selector(job, children)
    job_state.service_has_selector = True


async def _merge_selector(job: Job, children: ChildObjects) -> None:
    client, namespace, name = children.client, job.metadata.namespace, build_children_name(job.metadata.name)
    selector = render.render_pod_selector(job)
    try:
        stored = await _get_or_create_service(job, children)
        if read_owner_uid(stored) != job.metadata.uid or read_mapping(stored["spec"]).get("selector") == selector:
            return
        # With the uid, the merge fails if someone has replaced the Service since the read.
        uid = read_mapping(stored["metadata"]).get("uid")
        await client.merge(SERVICES, namespace, name, {"metadata": {"uid": uid}, "spec": {"selector": selector}})
    except ApiError as error:
        # A user deletes or replaces the Service at this moment: muster looks again at the next start of the ranks.
        if not (error.is_not_found or error.is_conflict):
            raise


async def _get_or_create_service(job: Job, children: ChildObjects) -> Object:
    namespace, name = job.metadata.namespace, build_children_name(job.metadata.name)
    try:
        return await children.client.get(SERVICES, namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
    # If it is refused, the next request finds no Service either.
    await children.write_service(job)
    return await children.client.get(SERVICES, namespace, name)


def _list_active_pods(job: Job, pods: PodIndex) -> Iterator[PodEntry]:
    """Yield the nodes' newest pods that have not ended."""
    for node in range(count_nodes_and_spares(job)):
        entry = pods.get_newest_pod(job.metadata.uid, node)
        if entry is not None and entry.process.state is not ProcessState.EXITED:
            yield entry

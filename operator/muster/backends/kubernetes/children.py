"""Create and update a job's Service, ConfigMap and PodGroup. Kubernetes deletes them together with the resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.clients.kubernetes.client import Client
from muster.core.problem import Problem
from muster.diagnose.kubernetes.refusals import Refusal, build_name_conflict, read_refusal
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
class Children:
    """`ca_bundle` returns the CA certificates for agents, as PEM. All methods raise `ApiError`."""

    client: Client
    pod_settings: PodSettings
    agent_config_maps: AgentConfigMaps
    ca_bundle: Callable[[], str]

    async def make(self, job: Job) -> Refusal | None:
        """Create or update the Service and the ConfigMaps. Return the refusal, if any."""
        service, config_map, agent_config_map = await asyncio.gather(
            self._create_or_update(job, SERVICES, render.render_service(job)),
            self.make_config_map(job),
            self.agent_config_maps.make(job),
        )
        return service or config_map or agent_config_map

    async def make_config_map(self, job: Job) -> Refusal | None:
        """Create or update the ConfigMap with the current plan. Return the refusal, if any."""
        plan = render_plan(job, self.pod_settings.collector_url, self.ca_bundle())
        return await self._create_or_update(job, CONFIG_MAPS, render.render_config_map(job, plan))

    async def make_pod_group(self, job: Job) -> Refusal | None:
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
        """Update a PodGroup of an earlier spec; keep what its scheduler added."""
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

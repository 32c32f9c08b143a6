"""Create the ConfigMaps with the agent's archive: one for each namespace, which all jobs of the namespace mount."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.clients.kubernetes.client import Client
from muster.diagnose.kubernetes.refusals import Refusal, build_name_conflict, read_refusal
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAP_IDENTITIES, CONFIG_MAPS, Object
from muster.objects.kubernetes.pods import read_owner_uid
from muster.render.agent_archive import build_agent_archive
from muster.render.kubernetes.render import render_agent_config_map


@dataclass
class AgentConfigMaps:
    """The ConfigMaps of all namespaces, each with this `name`. `has_job(uid)` says whether this operator runs the job.

    Kubernetes deletes a ConfigMap together with the job that owns it. Then another job of the namespace becomes the
    owner. Pods that run keep their mounted copy, because the kubelet does not read an immutable ConfigMap again.
    """

    client: Client
    name: str
    has_job: Callable[[str], bool]
    _owners: dict[str, str] = field(default_factory=dict)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def make(self, job: Job) -> Refusal | None:
        """Create the ConfigMap of the job's namespace if it is missing. Return the refusal, if any.

        Raises `ApiError`.
        """
        namespace = job.metadata.namespace
        lock = self._locks.setdefault(namespace, asyncio.Lock())
        async with lock:
            if self.has_job(self._owners.get(namespace, "")):
                return None
            return await self._create_or_adopt(job)

    async def check(self, namespace: str) -> None:
        """Find out whether a user has deleted the namespace's ConfigMap, for the next `make`. Raises `ApiError`."""
        owner = self._owners.get(namespace)
        if owner is None:
            return
        try:
            stored_owner = read_owner_uid(await self.client.get(CONFIG_MAP_IDENTITIES, namespace, self.name))
        except ApiError as error:
            if not error.is_not_found:
                raise
            stored_owner = ""
        if stored_owner != owner:
            self.expect_missing(namespace)

    def expect_missing(self, namespace: str) -> None:
        """Check the namespace's ConfigMap at the next `make`: a user has deleted it."""
        self._owners.pop(namespace, None)

    async def _create_or_adopt(self, job: Job) -> Refusal | None:
        namespace, body = job.metadata.namespace, render_agent_config_map(job, self.name, build_agent_archive())
        try:
            await self.client.create_large(CONFIG_MAPS, namespace, body)
        except ApiError as error:
            if error.already_exists:
                return await self._adopt(job, body)
            refusal = read_refusal(error, body, job)
            if refusal is None:
                raise
            return refusal
        self._owners[namespace] = job.metadata.uid
        return None

    async def _adopt(self, job: Job, body: Object) -> Refusal | None:
        """Make the job the owner, unless the owner is a job that still exists."""
        namespace, name = job.metadata.namespace, self.name
        stored = await self.client.get(CONFIG_MAPS, namespace, name)
        # Users may create ConfigMaps. All pods of the namespace run this code with their jobs' credentials.
        if any(stored.get(key) != body[key] for key in ("binaryData", "immutable")):
            return Refusal(build_name_conflict(CONFIG_MAPS.name, name, namespace))
        owner = read_owner_uid(stored)
        if not self.has_job(owner):
            patch: Object = {
                "metadata": {
                    # A conflict if Kubernetes has deleted it with its previous owner, and it was created again.
                    "uid": read_mapping(stored.get("metadata")).get("uid"),
                    "ownerReferences": read_mapping(body["metadata"])["ownerReferences"],
                }
            }
            await self.client.merge(CONFIG_MAPS, namespace, name, patch)
            owner = job.metadata.uid
        self._owners[namespace] = owner
        return None

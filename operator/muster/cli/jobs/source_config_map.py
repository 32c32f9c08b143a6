"""The ConfigMap with the packed code that a command sends to a job."""

from __future__ import annotations

import base64

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import API_VERSION, JOB_UID_LABEL, KIND
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.source_files import PackedSource
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAP_IDENTITIES, CONFIG_MAPS, Object
from muster.objects.kubernetes.names import JOB_LABEL, SOURCE_KEY, SOURCE_LABEL, build_source_name
from muster.objects.kubernetes.pods import read_owner_uid


def make_config_map(resource: Object, packed_source: PackedSource) -> Object:
    """Return the ConfigMap with the packed code. The job owns it, so Kubernetes deletes it with the job."""
    metadata = read_mapping(resource.get("metadata"))
    job_name, uid = read_string(metadata.get("name")), read_string(metadata.get("uid"))
    owner: dict[str, JSON] = {"apiVersion": API_VERSION, "kind": KIND, "name": job_name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": build_source_name(job_name, packed_source.sha256),
            "labels": {JOB_LABEL: job_name, JOB_UID_LABEL: uid, SOURCE_LABEL: "rerun"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "immutable": True,
        "binaryData": {SOURCE_KEY: base64.b64encode(packed_source.archive).decode("ascii")},
    }


async def create_config_map(target: ClusterJob, resource: Object, packed_source: PackedSource) -> str:
    """Create the ConfigMap of the job `resource`, and return its name. Raises `ApiError`.

    If this job has already received the same code, keep the existing one. Replace that of an earlier job of the same
    name, which Kubernetes deletes only some time after the job.
    """
    body = make_config_map(resource, packed_source)
    name = read_string(read_mapping(body.get("metadata")).get("name"))
    try:
        await target.client.create_large(CONFIG_MAPS, target.namespace, body)
    except ApiError as error:
        if not error.already_exists:
            raise
        if not await _belongs_to_job(target, name, read_owner_uid(body)):
            await target.client.create_large(CONFIG_MAPS, target.namespace, body)
    return name


async def _belongs_to_job(target: ClusterJob, name: str, job_uid: str) -> bool:
    """Return whether the ConfigMap belongs to this job; delete it if it belongs to an earlier one. Raises `ApiError`.

    The operator checks the content.
    """
    try:
        existing = await target.client.get(CONFIG_MAP_IDENTITIES, target.namespace, name)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return False
    if read_owner_uid(existing) == job_uid:
        return True
    uid = read_string(read_mapping(existing.get("metadata")).get("uid"))
    await target.client.delete(CONFIG_MAPS, target.namespace, name, uid=uid)
    return False

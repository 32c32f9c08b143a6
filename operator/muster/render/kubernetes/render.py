"""Render a job's child objects for the API server. Pure and deterministic."""

import base64
from collections.abc import Sequence

from muster.api.json_fields import read_mapping
from muster.api.names import JOB_UID_LABEL
from muster.api.spec.job import Job
from muster.objects.kubernetes.kinds import CONFIG_MAPS, PODS, SERVICES, Kind, Object
from muster.objects.kubernetes.names import (
    ARCHIVE_KEY,
    PLAN_KEY,
    STORAGE_KEY,
    build_children_name,
)
from muster.render.kubernetes.base_patches import make_job_labels, make_owner_reference
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import merge_patches
from muster.render.kubernetes.pod_patches import make_pod_patches
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.storage.storage_plan import encode_plan, make_storage_plan
from muster_worker.contract import wire
from muster_worker.contract.schema import Plan


def render_pod(
    job: Job,
    node: int,
    replacement: int,
    pod_settings: PodSettings,
    avoided_nodes: Sequence[str] = (),
    *,
    group_number: int = 0,
) -> Object:
    """Return a node's pod, which avoids some Kubernetes nodes and is in the group `group_number` of Kueue.

    Raises `NotRenderable`.
    """
    patches = make_pod_patches(job, node, replacement, pod_settings, avoided_nodes, group_number=group_number)
    fields = merge_patches(patches.all)
    metadata = read_mapping(fields["metadata"])
    # Output metadata in the usual order.
    names = ("name", "namespace", "labels", "annotations", "ownerReferences")
    ordered_metadata = {name: metadata[name] for name in names}
    return {**_make_type(PODS), "metadata": ordered_metadata, "spec": fields["spec"]}


def render_service(job: Job) -> Object:
    """Return the headless Service for the nodes' DNS names, which resolve before the nodes are ready.

    It selects no pods until its spec has the selector of `render_pod_selector`.
    """
    # Without a selector, the API server's default is RequireDualStack, with which many clusters refuse the selector.
    spec: Fields = {"clusterIP": "None", "ipFamilyPolicy": "SingleStack", "publishNotReadyAddresses": True}
    return {**_make_type_and_metadata(SERVICES, job), "spec": spec}


def render_pod_selector(job: Job) -> Fields:
    """Return the selector with which the Service selects the job's pods."""
    return {JOB_UID_LABEL: job.metadata.uid}


def render_config_map(job: Job, plan: Plan) -> Object:
    """Return the ConfigMap with the plan, which all pods of the job mount."""
    data: Fields = {PLAN_KEY: wire.encode(plan).decode("utf-8")}
    files = make_storage_plan(job)
    if files is not None:
        data[STORAGE_KEY] = encode_plan(files)
    return {**_make_type_and_metadata(CONFIG_MAPS, job), "data": data}


def render_agent_config_map(job: Job, name: str, archive: bytes) -> Object:
    """Return the ConfigMap `name` with the agent, which all pods of the namespace mount. It belongs to `job`.

    It is immutable, so that the kubelets need not watch it.
    """
    return {
        **_make_type(CONFIG_MAPS),
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {"app.kubernetes.io/managed-by": "muster"},
            "ownerReferences": [make_owner_reference(job)],
        },
        "immutable": True,
        "binaryData": {ARCHIVE_KEY: base64.b64encode(archive).decode("ascii")},
    }


def _make_type_and_metadata(kind: Kind, job: Job) -> Fields:
    return {
        **_make_type(kind),
        "metadata": {
            "name": build_children_name(job.metadata.name),
            "namespace": job.metadata.namespace,
            "labels": make_job_labels(job),
            "ownerReferences": [make_owner_reference(job)],
        },
    }


def _make_type(kind: Kind) -> Fields:
    return {"apiVersion": kind.api_version, "kind": kind.name}

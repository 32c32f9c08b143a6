"""Small builders for jobs on a cluster, and readers of the rendered objects."""

import json
from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job, Metadata, Spec
from muster.objects.kubernetes.kinds import Object
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_entries, get_trainer
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.render import render_pod

SETTING = PodSettings(
    cluster_domain="cluster.local",
    collector_url="https://muster-collector.muster-system.svc:8443",
    agent_config_map="muster-agent-0",
    agent_image="registry.example/muster:1",
    storage_image="registry.example/muster:1",
    pull_policy="Always",
)
UID = "7d3c1f52-0f0e-4d43-9a4e-4a8d5a3f9b11"
IMAGE = "pytorch/pytorch:2.8.0"


def cluster_job(**spec: JSON) -> Job:
    """Return a job of two nodes; `spec` has fields as in a file."""
    fields: Fields = {"nodes": 2, "launcher": {"torchrun": {}}, "image": IMAGE, "command": ["python", "train.py"]}
    return Job(
        metadata=Metadata(name="vit", namespace="team", uid=UID),
        spec=Spec.model_validate_json(json.dumps({**fields, **spec})),
    )


def with_trainer(**fields: JSON) -> Fields:
    """Return a partial template with these fields of the ranks' container."""
    container: Fields = {"name": "trainer", **fields}
    return {"spec": {"containers": [container]}}


def rendered(job: Job, node: int = 0, replacement: int = 0) -> Fields:
    return dict(render_pod(job, node, replacement, SETTING))


def pod_spec(job: Job, node: int = 0) -> Fields:
    return read_mapping(rendered(job, node)["spec"])


def trainer(job: Job, node: int = 0) -> Fields:
    return get_trainer(rendered(job, node))


def mounts(job: Job) -> dict[JSON, Fields]:
    """Return the trainer's mounts by their paths."""
    return {str(mount["mountPath"]): mount for mount in get_entries(trainer(job), "volumeMounts")}


def volumes(job: Job) -> dict[JSON, Fields]:
    """Return the pod's volumes by their names."""
    return {str(volume["name"]): volume for volume in get_entries(pod_spec(job), "volumes")}


def labels(child: Object) -> Mapping[str, JSON]:
    return read_mapping(read_mapping(child["metadata"])["labels"])

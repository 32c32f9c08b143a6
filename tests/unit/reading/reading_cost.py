"""The processor time of the operator's handling of a new resource, without requests."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Mapping
from contextlib import suppress

from muster.api import names
from muster.api.config import tenancy
from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.cli.render.training_request import build_request
from muster.core.status.unreconciled.refused_status import make_refused_status
from muster.objects.kubernetes.job_source import WATCHED_JOBS
from muster.objects.kubernetes.json_parts import find_value
from muster.objects.kubernetes.object_parser import read_object
from muster.objects.kubernetes.resource import read_resource
from muster.render.agent_plan import render_plan
from muster.render.kubernetes import render
from muster.render.kubernetes.apply_defaults import apply_defaults
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.spec_hash import hash_spec
from muster.render.kubernetes.user_patches import group_equal_nodes

BOUND_SECONDS = 0.25
"""The limit for a resource."""

NOISE = 4
"""A machine with other work takes up to this many times as long: more is no noise."""

AGAIN = 4

_SETTING = PodSettings(
    cluster_domain="cluster.local",
    collector_url="https://muster-collector.muster-system.svc:8443",
    agent_config_map="muster-agent-0",
    agent_image="registry.example/muster:1",
    storage_image="registry.example/muster:1",
)
_REGION, _ACCOUNT = "us-west-2", "111122223333"


def resource_of(spec: JSON, status: JSON = None) -> bytes:
    """As the API server sends it."""
    metadata: dict[str, JSON] = {
        "name": "slow",
        "namespace": "team",
        "uid": "7d3c1f52-0f0e-4d43-9a4e-4a8d5a3f9b11",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-11-22T00:00:00Z",
    }
    body: dict[str, JSON] = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec}
    return json.dumps(body if status is None else {**body, "status": status}).encode()


def parts_of_reading(text: bytes) -> Mapping[str, float]:
    """Seconds of each part: none of them yields to others."""
    parts: dict[str, float] = {}
    began = time.thread_time()
    resource = read_resource(read_object(find_value(text), WATCHED_JOBS.parse_options))
    if isinstance(resource.job, InvalidResource):
        make_refused_status(resource.status, resource.job, 1, 0.0)
    parts["read"] = time.thread_time() - began
    if not isinstance(resource.job, InvalidResource):
        rendered = _rendered_for_sagemaker if resource.job.spec.backend == "SageMaker" else _rendered_for_a_cluster
        rendered(resource.job, parts)
    return parts


def seconds_of_reading(text: bytes) -> float:
    """Processor time of the longest part.

    A longer time than the limit is measured again: other processes of the machine can only lengthen it.
    """
    longest = _longest_part(text)
    for _ in range(AGAIN):
        if longest <= BOUND_SECONDS:
            break
        longest = min(longest, _longest_part(text))
    return longest


def _longest_part(text: bytes) -> float:
    # The garbage collector would also go through what hypothesis keeps of hundreds of examples.
    gc.freeze()
    return max(parts_of_reading(text).values())


def _rendered_for_a_cluster(job: Job, parts: dict[str, float]) -> None:
    began = time.thread_time()
    whole: Job | None = None
    with suppress(InvalidResource):
        tenancy.check_tenancy(job, (), "")
    with suppress(InvalidResource):
        whole = apply_defaults(job, Status(), ())
    parts["admit"] = time.thread_time() - began
    if whole is None:
        return
    began = time.thread_time()
    hash_spec(whole)
    groups = group_equal_nodes(whole)
    render.render_config_map(whole, render_plan(whole, _SETTING.collector_url, "PEM"))
    parts["children"] = time.thread_time() - began
    for group in {groups[0], groups[-1]}:
        began = time.thread_time()
        with suppress(NotRenderable):
            render.render_pod(whole, group[0], 0, _SETTING)
        parts[f"pod {group[0]}"] = time.thread_time() - began


def _rendered_for_sagemaker(job: Job, parts: dict[str, float]) -> None:
    began = time.thread_time()
    with suppress(InvalidResource):
        tenancy.check_tenancy(job, (), _REGION)
    with suppress(InvalidResource):
        build_request(job, _REGION, _ACCOUNT)
    parts["request"] = time.thread_time() - began

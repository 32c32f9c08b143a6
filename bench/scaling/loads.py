"""What is created: the floor's pods, Indexed Jobs and muster's jobs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.api.config.operator import OperatorConfig
from muster.api.document import Document
from muster.api.status.status import Status
from muster.api.validation.validate import validate
from muster.controller.backends import apply_defaults
from muster.render.kubernetes import render
from muster.render.kubernetes.pod_settings import PodSettings
from scaling.api import Request

IMAGE = "registry.example/train:1"
COMMAND = ["python", "train.py"]
RANKS = 8
_POD_SETTINGS = PodSettings("cluster.local", "https://muster-collector.bench.svc:8443")


@dataclass(frozen=True)
class Shape:
    """How many jobs, and how many pods in each."""

    jobs: int
    pods: int

    @property
    def name(self) -> str:
        """Return the name in the result."""
        return f"{self.jobs} x {self.pods}"

    @property
    def all_pods(self) -> int:
        """Return the number of pods of all jobs."""
        return self.jobs * self.pods


@dataclass(frozen=True)
class Contestant:
    """What creates pods, and what a user sends for a job of some pods: namespace, name and pods are the arguments.

    `qps` and `burst` are limits of the controller manager. `job_resource` is "" without a resource for jobs.
    """

    name: str
    requests: Callable[[str, str, int], list[Request]]
    job_resource: str
    jobs_path: str
    qps: int = 20
    burst: int = 30


def bare_pods(namespace: str, name: str, pods: int) -> list[Request]:
    """Return the pods that muster creates for a job, without their owner."""
    body = _muster_job(namespace, name, pods)
    body["metadata"] |= {"uid": "none"}
    job = apply_defaults(validate(Document(body)), Status(), OperatorConfig())
    rendered = [dict(render.pod(job, node, 0, _POD_SETTINGS)) for node in range(pods)]
    for pod in rendered:
        metadata: Any = pod["metadata"]
        pod["metadata"] = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    return [Request("POST", f"/api/v1/namespaces/{namespace}/pods", pod) for pod in rendered]


def indexed_job(namespace: str, name: str, pods: int) -> list[Request]:
    """Return an Indexed Job, as simple as a user writes it."""
    container = {"name": "trainer", "image": IMAGE, "command": COMMAND}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    return [Request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)]


def muster_job(namespace: str, name: str, pods: int) -> list[Request]:
    """Return a job of muster's."""
    path = f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    return [Request("POST", path, _muster_job(namespace, name, pods))]


def _muster_job(namespace: str, name: str, pods: int) -> dict[str, Any]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodes": pods,
            "procsPerNode": RANKS,
            "launcher": {"torchrun": {}},
            "image": IMAGE,
            "command": COMMAND,
        },
    }


FLOOR = Contestant("floor", bare_pods, "", "")
MUSTER = Contestant("muster", muster_job, "distributedtrainingjobs", "apis/muster.dev/v1alpha1")
CONTESTANTS = (
    FLOOR,
    Contestant("indexed-job", indexed_job, "jobs", "apis/batch/v1"),
    Contestant("indexed-job-500", indexed_job, "jobs", "apis/batch/v1", 500, 1000),
    MUSTER,
)

"""The objects that the benchmark creates: bare pods, Indexed Jobs and muster's jobs."""

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
_POD_SETTINGS = PodSettings("cluster.local", "https://muster-collector.bench.svc:8443", "muster-agent-0")


@dataclass(frozen=True)
class Shape:
    """The number of jobs, and the number of pods of each job."""

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
class PodCreator:
    """A way to create the pods of a job. `requests` returns the user's requests for (namespace, name, pods).

    `qps` and `burst` are limits of the controller manager. `job_resource` is "" if the user creates the pods directly.
    """

    name: str
    requests: Callable[[str, str, int], list[Request]]
    job_resource: str
    jobs_path: str
    qps: int = 20
    burst: int = 30


def make_bare_pods(namespace: str, name: str, pods: int) -> list[Request]:
    """Return the pods that muster creates for a job, without owner references."""
    body = _make_job_body(namespace, name, pods)
    body["metadata"] |= {"uid": "none"}
    job = apply_defaults(validate(Document(body)), Status(), OperatorConfig())
    rendered = [dict(render.render_pod(job, node, 0, _POD_SETTINGS)) for node in range(pods)]
    for pod in rendered:
        metadata: Any = pod["metadata"]
        pod["metadata"] = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    return [Request("POST", f"/api/v1/namespaces/{namespace}/pods", pod) for pod in rendered]


def make_indexed_job(namespace: str, name: str, pods: int) -> list[Request]:
    """Return an Indexed Job with only the necessary fields."""
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


def make_muster_job(namespace: str, name: str, pods: int) -> list[Request]:
    """Return a job for muster."""
    path = f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    return [Request("POST", path, _make_job_body(namespace, name, pods))]


def _make_job_body(namespace: str, name: str, pods: int) -> dict[str, Any]:
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


BARE_CLIENT = PodCreator("bare-client", make_bare_pods, "", "")
MUSTER = PodCreator("muster", make_muster_job, "distributedtrainingjobs", "apis/muster.dev/v1alpha1")
POD_CREATORS = (
    BARE_CLIENT,
    PodCreator("indexed-job", make_indexed_job, "jobs", "apis/batch/v1"),
    PodCreator("indexed-job-500", make_indexed_job, "jobs", "apis/batch/v1", 500, 1000),
    MUSTER,
)

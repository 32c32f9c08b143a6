"""Jobs on the test cluster: their commands, and requests about them."""

import time
from dataclasses import dataclass
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import WAIT_SECONDS, Kubectl, Manifest
from cluster.waiting import PAUSE_SECONDS

OK = "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)"
FOREVER = "import time; time.sleep(600)"


def manifest(name: str, script: str = OK, **spec: object) -> Manifest:
    """Two nodes with two ranks each that run a Python script."""
    template = {"spec": {"terminationGracePeriodSeconds": 6, "containers": [_trainer()]}}
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {
            "nodes": 2,
            "procsPerNode": 2,
            "launcher": {"direct": {}},
            "image": PYTHON_IMAGE,
            "command": ["python3", "-c", script],
            "template": template,
            **spec,
        },
    }


def _trainer() -> Manifest:
    return {"name": "trainer", "imagePullPolicy": PULL_POLICY}


@dataclass(frozen=True)
class Jobs:
    """The jobs of a namespace."""

    kubectl: Kubectl
    namespace: str

    def apply(self, name: str, script: str = OK, **spec: object) -> None:
        """Apply a job."""
        self.kubectl.apply_job(self.namespace, manifest(name, script, **spec))

    def wait(self, name: str, condition: str) -> None:
        """Wait for `condition=Complete`, `jsonpath={.status.phase}=Running`, `delete`."""
        try:
            self.kubectl.wait(condition, f"dtj/{name}", f"--namespace={self.namespace}")
        except AssertionError as late:
            columns = "{.status.phase}: {.status.message}; {.status.ranks.byState}; {.status.conditions[*].message}"
            late.add_note(self.run("get", f"dtj/{name}", "--ignore-not-found", f"--output=jsonpath={columns}"))
            raise

    def resource(self, name: str) -> Any:
        """Return the job's resource."""
        return self.kubectl.read_job(self.namespace, name)

    def status(self, name: str) -> Any:
        """Return the job's status."""
        return self.resource(name).get("status", {})

    def patch(self, name: str, **spec: object) -> None:
        """Patch the job's spec."""
        self.kubectl.patch_job(self.namespace, name, {"spec": spec})

    def children(self, name: str, *kinds: str) -> set[str]:
        """Return the job's objects of these kinds, or all of them, without its resource: `pod/vit-0-0`."""
        return {
            f"{kind.removesuffix('s')}/{each['metadata']['name']}"
            for kind in kinds or ("pods", "services", "configmaps")
            for each in self.kubectl.list(self.namespace, kind, f"muster.dev/job={name}")
        }

    def started_pod(self, name: str) -> Any:
        """Return a pod whose container has started by the kubelet's report, which is later than muster's report of the
        rank.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while not _has_started(pod := self.kubectl.read(f"/api/v1/namespaces/{self.namespace}/pods/{name}")):
            assert time.monotonic() < deadline, pod["status"]
            time.sleep(PAUSE_SECONDS)
        return pod

    def log(self, pod: str) -> str:
        """Return a pod's log."""
        return self.kubectl.read_log(self.namespace, self.started_pod(pod)["metadata"]["name"], "trainer")

    def wait_for_log(self, pod: str, *lines: str) -> str:
        """Return a pod's log once it has these texts. A rank is reported before its first line is in the log."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not all(line in (said := self.log(pod)) for line in lines):
            assert time.monotonic() < deadline, said
            time.sleep(PAUSE_SECONDS)
        return said

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the jobs' namespace."""
        return self.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)


def _has_started(pod: Any) -> bool:
    return any(each.get("containerID") for each in pod["status"].get("containerStatuses", [])[:1])

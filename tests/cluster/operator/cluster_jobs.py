"""Jobs on the test cluster: their commands, and requests about them."""

import json
from dataclasses import dataclass
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl, Manifest

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
        self.run("apply", "-f", "-", stdin=json.dumps(manifest(name, script, **spec)))

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
        return json.loads(self.run("get", f"dtj/{name}", "--output=json"))

    def status(self, name: str) -> Any:
        """Return the job's status."""
        return self.resource(name).get("status", {})

    def patch(self, name: str, **spec: object) -> None:
        """Patch the job's spec."""
        self.run("patch", f"dtj/{name}", "--type=merge", "--patch", json.dumps({"spec": spec}))

    def children(self, name: str, kinds: str = "pods,services,configmaps") -> set[str]:
        """Return the job's objects, without its resource."""
        selector = f"--selector=muster.dev/job={name}"
        return set(self.run("get", kinds, selector, "--output=name").split())

    def started_pod(self, name: str) -> Any:
        """Return a pod whose container has started by the kubelet's report, which is later than muster's report of the
        rank.
        """
        self.kubectl.wait(
            "jsonpath={.status.containerStatuses[0].containerID}", f"pod/{name}", f"--namespace={self.namespace}"
        )
        return json.loads(self.run("get", "pod", name, "--output=json"))

    def log(self, pod: str) -> str:
        """Return a pod's log."""
        return self.run("logs", self.started_pod(pod)["metadata"]["name"])

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the jobs' namespace."""
        return self.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)

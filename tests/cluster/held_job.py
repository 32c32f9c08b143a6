"""A job whose ranks count steps until they are let go: for what happens meanwhile."""

import json
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl, Manifest

# The file is in the pod's own /tmp, so nothing but `let_go` ends it. A rank that began again would count from 1 again.
RANK = """
import os, sys, time, muster_worker
print("held", flush=True)
step = 0
while not os.path.exists("/tmp/go"):
    step += 1
    muster_worker.report(step=step)
    time.sleep(0.1)
sys.exit(int(open("/tmp/go").read() or 0))
"""
TRAINER = "--container=trainer"
JOB = "distributedtrainingjob"


def held_job(name: str, namespace: str, nodes: int = 2, procs_per_node: int = 2) -> Manifest:
    """It is as large as is said."""
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodes": nodes,
            "procsPerNode": procs_per_node,
            "launcher": {"direct": {}},
            "image": PYTHON_IMAGE,
            "command": ["python3", "-c", RANK],
            "cleanPodPolicy": "None",
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{"name": "trainer", "imagePullPolicy": PULL_POLICY}],
                }
            },
        },
    }


def status(kubectl: Kubectl, namespace: str, job: str) -> Any:
    """What its status says."""
    return json.loads(kubectl("get", JOB, job, f"--namespace={namespace}", "--output=json")).get("status", {})


def steps(kubectl: Kubectl, namespace: str, job: str) -> int:
    """The steps that all ranks have taken, by the job's status; 0 when it says nothing of them."""
    return int(status(kubectl, namespace, job).get("progress", {}).get("step", 0))


def pods(kubectl: Kubectl, namespace: str, job: str = "") -> dict[str, str]:
    """The pods of a job, or of all: each one's name with its uid and how often its container was started again."""
    path = "{range .items[*]}{.metadata.name}={.metadata.uid} {.status.containerStatuses[*].restartCount}{'\\n'}{end}"
    selector = f"--selector=muster.dev/job={job}" if job else "--selector=muster.dev/job"
    listed = kubectl("get", "pods", f"--namespace={namespace}", selector, f"--output=jsonpath={path}")
    return dict(line.split("=", 1) for line in listed.splitlines())


def let_go(kubectl: Kubectl, namespace: str, job: str = "", code: int = 0) -> None:
    """Let the ranks of a job, or of all, end with an exit code."""
    word = ("sh", "-c", f"printf {code} > /tmp/new && mv /tmp/new /tmp/go")
    for pod in pods(kubectl, namespace, job):
        kubectl("exec", pod, f"--namespace={namespace}", TRAINER, "--", *word)

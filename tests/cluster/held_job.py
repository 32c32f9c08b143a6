"""A job whose ranks count steps until the test releases them."""

from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl, Manifest

# The file is in the pod's own /tmp, so only `let_go` ends it. A restarted rank would count from 1 again.
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
TRAINER_CONTAINER = "--container=trainer"
JOB = "distributedtrainingjob"


def held_job(name: str, namespace: str, nodes: int = 2, procs_per_node: int = 2) -> Manifest:
    """Return the job with this size."""
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
    """Return the job's status."""
    return kubectl.read_job(namespace, job).get("status", {})


def steps(kubectl: Kubectl, namespace: str, job: str) -> int:
    """Return the steps that all ranks have taken, by the job's status; 0 if it has none."""
    return int(status(kubectl, namespace, job).get("progress", {}).get("step", 0))


def pods(kubectl: Kubectl, namespace: str, job: str = "") -> dict[str, str]:
    """Return the pods of a job, or of all jobs: each name with the uid and the number of container restarts."""
    found = kubectl.list(namespace, "pods", f"muster.dev/job={job}" if job else "muster.dev/job")
    return {each["metadata"]["name"]: f"{each['metadata']['uid']} {_count_restarts(each)}" for each in found}


def _count_restarts(pod: Any) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))


def ready_pods(kubectl: Kubectl, namespace: str, job: str = "") -> dict[str, str]:
    """Wait until all pods are ready, and return them: the kubelet reports them later than their ranks report steps."""
    selector = f"--selector=muster.dev/job={job}" if job else "--selector=muster.dev/job"
    kubectl.wait("condition=Ready", "pods", selector, f"--namespace={namespace}")
    return pods(kubectl, namespace, job)


def let_go(kubectl: Kubectl, namespace: str, job: str = "", code: int = 0) -> None:
    """End the ranks of a job, or of all jobs, with an exit code."""
    word = ("sh", "-c", f"printf {code} > /tmp/new && mv /tmp/new /tmp/go")
    for pod in pods(kubectl, namespace, job):
        kubectl("exec", pod, f"--namespace={namespace}", TRAINER_CONTAINER, "--", *word)

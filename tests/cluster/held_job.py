"""A job whose ranks go on until they are let go: for what happens meanwhile."""

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl, Manifest

# The file is in the pod's own /tmp, so nothing but `let_go` ends it.
RANK = "while [ ! -e /tmp/go ]; do sleep 0.2; done"
TRAINER = "--container=trainer"


def held_job(name: str, namespace: str) -> Manifest:
    """Two nodes with a rank each."""
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodes": 2,
            "launcher": {"direct": {}},
            "image": PYTHON_IMAGE,
            "command": ["sh", "-c", RANK],
            "cleanup": {"pods": "None"},
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{"name": "trainer", "imagePullPolicy": PULL_POLICY}],
                }
            },
        },
    }


def pods(kubectl: Kubectl, namespace: str) -> dict[str, str]:
    """The job's pods: each one's name with its uid and how often its container was started again."""
    path = "{range .items[*]}{.metadata.name}={.metadata.uid} {.status.containerStatuses[*].restartCount}{'\\n'}{end}"
    listed = kubectl(
        "get", "pods", f"--namespace={namespace}", "--selector=muster.dev/job", f"--output=jsonpath={path}"
    )
    return dict(line.split("=", 1) for line in listed.splitlines())


def let_go(kubectl: Kubectl, namespace: str) -> None:
    """Let the ranks end well."""
    for pod in pods(kubectl, namespace):
        kubectl("exec", pod, f"--namespace={namespace}", TRAINER, "--", "touch", "/tmp/go")  # noqa: S108 - the pod's

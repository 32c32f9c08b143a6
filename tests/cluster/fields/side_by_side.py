"""Jobs that all start at once, because each takes seconds, and are checked one by one."""

from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.operator.cluster_jobs import Jobs
from cluster.shared import Manifest

NOTHING: Manifest = {}


def template(container: Manifest = NOTHING, *, grace: int = 6, **pod: object) -> Manifest:
    """Return a job's template with further fields in `trainer` and in the pod."""
    others = pod.pop("containers", [])
    assert isinstance(others, list)
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, **container}
    return {"spec": {"terminationGracePeriodSeconds": grace, "containers": [trainer, *others], **pod}}


def sleeper(name: str) -> Manifest:
    """Return a container that ends only when it gets a signal, and then at once."""
    script = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()"
    return {
        "name": name,
        "image": PYTHON_IMAGE,
        "imagePullPolicy": PULL_POLICY,
        "command": ["python3", "-c", script],
    }


def condition(jobs: Jobs, name: str, kind: str) -> Any:
    """Return one of the job's conditions."""
    return next(entry for entry in jobs.status(name)["conditions"] if entry["type"] == kind)


def wait_for_deletion(jobs: Jobs, *objects: str) -> None:
    """Wait until objects are deleted."""
    jobs.kubectl.wait("delete", *objects, f"--namespace={jobs.namespace}")

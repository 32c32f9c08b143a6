"""Jobs whose statuses the tests write, in a namespace without an operator."""

import json
from dataclasses import dataclass
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.shared import Kubectl
from muster.api.document import JSON
from muster.api.status.progress import Progress
from muster.api.status.status import (
    Condition,
    NodeCounts,
    RankDetail,
    RankStatus,
    StateRange,
    Status,
    StepRange,
)
from muster.api.yaml.serialise import serialise_status

NAME = "told"
JOB = f"dtj/{NAME}"
STARTED = "2026-01-01T00:00:00Z"

RUNNING = Status(
    phase="Running",
    message="4 of 4 ranks run; step 120, 3.4 steps/s",
    conditions=(Condition(type="Running", status="True", reason="Running", last_transition_time=STARTED),),
    nodes=NodeCounts(desired=2, ready=2),
    ranks=RankStatus(
        world=4,
        running=4,
        ready="4/4",
        by_state=(StateRange(state="Running", count=4, ranks="0-3"),),
        by_step=(StepRange(step=120, ranks="2"), StepRange(step=131, ranks="0-1,3")),
    ),
    progress=Progress(step=120, steps_per_second=3.4, slowest_rank=2, metrics={"loss": 0.25}),
    start_time=STARTED,
)
FAILED = Status(
    phase="Failed",
    message="Rank 2 on told-1 exited with 3 at step 131: ValueError: no",
    conditions=(Condition(type="Failed", status="True", reason="RankFailed", last_transition_time=STARTED),),
    nodes=NodeCounts(desired=2, ready=0),
    ranks=RankStatus(
        world=4,
        running=0,
        ready="0/4",
        by_state=(
            StateRange(state="Failed", count=1, ranks="2"),
            StateRange(state="Stopped", count=3, ranks="0-1,3"),
        ),
        details=(
            RankDetail(
                rank=2,
                node=1,
                state="Failed",
                exit_code=3,
                reason="RankFailed",
                message="ValueError: no",
            ),
        ),
    ),
    start_time=STARTED,
    completion_time="2026-01-01T00:01:12Z",
)
COMPLETE = FAILED.model_copy(
    update={
        "phase": "Succeeded",
        "message": "All 4 ranks succeeded",
        "conditions": (
            Condition(type="Complete", status="True", reason="AllRanksSucceeded", last_transition_time=STARTED),
        ),
    }
)
REFUSED = Status(
    observed_generation=1,
    phase="Refused",
    message="spec.metrics[0].regex: found '('",
    conditions=(Condition(type="Accepted", status="False", reason="Invalid", last_transition_time=STARTED),),
)
SUSPENDED = Status(
    observed_generation=9,
    phase="Suspended",
    message="Suspended; no pods are kept",
    conditions=(Condition(type="Suspended", status="True", reason="Suspended", last_transition_time=STARTED),),
)


@dataclass(frozen=True)
class ToldJobs:
    """The jobs of a namespace."""

    kubectl: Kubectl
    namespace: str

    def create(self, status: Status | None = None) -> None:
        """Create the job, with a status if one is given."""
        spec = {"nodes": 2, "procsPerNode": 2, "launcher": {"direct": {}}, "command": ["true"], "image": PYTHON_IMAGE}
        job = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob", "metadata": {"name": NAME}}
        self.kubectl.apply_job(self.namespace, {**job, "spec": spec})
        if status is not None:
            self.tell(status)

    def tell(self, status: Status) -> None:
        """Write the job's status."""
        whole = json.dumps({**self._read(), "status": serialise_status(status)})
        self._run("replace", "--subresource=status", "-f", "-", stdin=whole)

    def delete(self) -> None:
        """Delete the job."""
        self._run("delete", JOB)

    def pod(self, node: int, command: str, cpu: str = "10m") -> None:
        """Create a pod of the job that prints the output of `command` (a shell's), with a request for `cpu`."""
        uid = self._read()["metadata"]["uid"]
        labels = {"muster.dev/job": NAME, "muster.dev/job-uid": uid, "muster.dev/node": str(node)}
        trainer: dict[str, JSON] = {"name": "trainer", "image": PYTHON_IMAGE, "imagePullPolicy": PULL_POLICY}
        trainer |= {"command": ["sh", "-c", command], "resources": {"requests": {"cpu": cpu}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{NAME}-{node}-0", "labels": labels},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [trainer]},
        }
        self._run("apply", "-f", "-", stdin=json.dumps(pod))

    def pod_is(self, node: int, phase: str) -> None:
        """Wait for a pod's phase."""
        pod = f"pod/{NAME}-{node}-0"
        self.kubectl.wait(f"jsonpath={{.status.phase}}={phase}", pod, f"--namespace={self.namespace}")

    def _read(self) -> Any:
        return self.kubectl.read_job(self.namespace, NAME)

    def _run(self, *arguments: str, stdin: str | None = None) -> str:
        return self.kubectl(*arguments, f"--namespace={self.namespace}", stdin=stdin)

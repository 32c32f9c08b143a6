"""Jobs in a queue that has room for one of them."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.operator.cluster_jobs import Jobs
from cluster.operator.site import Site
from cluster.waiting import PAUSE_SECONDS

PATIENCE_SECONDS = 150.0

END_FILE = "/tmp/end"  # noqa: S108 - in the pod

UNTIL_TOLD = f"""
import os, time
while not os.path.exists("{END_FILE}"):
    time.sleep(0.1)
"""
"""A script that ends when the test tells it."""


@dataclass(frozen=True)
class Gangs:
    """The gangs of a namespace. `queue` is the jobs' `spec.queue`, `cpu` what each pod requests."""

    site: Site
    queue: Mapping[str, object]
    cpu: str

    @property
    def jobs(self) -> Jobs:
        """The jobs of the namespace."""
        return self.site.jobs

    def apply(
        self, name: str, script: str = UNTIL_TOLD, template: Mapping[str, object] | None = None, nodes: int = 2
    ) -> None:
        """Apply a job of pods with one rank each."""
        self.jobs.apply(
            name,
            script,
            nodes=nodes,
            procsPerNode=1,
            resources={"requests": {"cpu": self.cpu}},
            queue=dict(self.queue),
            failurePolicy={"maxRestarts": 0, "maxDisruptions": 3},
            **({} if template is None else {"template": template}),
        )

    def run(self, name: str) -> None:
        """Wait until the job's ranks run."""
        try:
            self.jobs.wait(name, "jsonpath={.status.phase}=Running")
        except AssertionError as late:
            late.add_note(self.site.said[-4000:])
            raise

    def end(self, name: str) -> None:
        """Let the job's scripts end."""
        for pod in self.pods(name):
            self.jobs.run("exec", pod["metadata"]["name"], "--container=trainer", "--", "touch", END_FILE)
        self.jobs.wait(name, "condition=Complete")

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a job that no client has deleted."""
        found = json.loads(self.jobs.run("get", "pods", f"--selector=muster.dev/job={name}", "--output=json"))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def wait_for_queue(self, name: str, reason: str, nodes: int = 2) -> str:
        """Wait until all pods of the job exist and muster gives this reason for waiting; return the message."""
        condition = "{.status.conditions[?(@.type=='Scheduled')].reason}"
        self.jobs.wait(name, f"jsonpath={condition}={reason}")
        self.until(lambda: len(self.pods(name)) == nodes)
        status = self.jobs.status(name)
        assert status["phase"] in {"Queued", "Restarting"}, status
        return str(status["message"])

    def has_no_placed_pod(self, name: str) -> bool:
        """Whether no pod of the job has a Kubernetes node."""
        return not any("nodeName" in pod["spec"] for pod in self.pods(name))

    @staticmethod
    def until(what: Callable[[], object]) -> None:
        """Wait for a state that kubectl can't wait for."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not what():
            assert time.monotonic() < deadline
            time.sleep(PAUSE_SECONDS)

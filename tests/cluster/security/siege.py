"""The operator as the chart installs it for the whole cluster, a hostile tenant, and another tenant's job."""

import contextlib
import json
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installation import Installation
from cluster.installed.awaited import until
from cluster.operator.cluster_jobs import Jobs
from cluster.reasons import machine
from cluster.security.attacks import Prey
from cluster.security.tenant import access
from cluster.security.watchman import Watched, watched
from cluster.shared import TESTS, Kubectl

VICTIM_SECONDS = 8
"""The time that its ranks need; the rest of its time is the cluster's and the operator's."""

PATIENCE_SECONDS = 150
"""The time limit for a victim's job."""

LIMIT = 2**30
"""The chart's memory limit, in bytes."""

_SCRIPT = f"import time; time.sleep({VICTIM_SECONDS})"
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Siege:
    """`victim` is the namespace of the other tenant."""

    release: Installation
    victim: str

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as the administrator."""
        return self.release.kubectl

    @property
    def prey(self) -> Prey:
        """A job of the victim's that continues to run."""
        uid = Jobs(self.kubectl, self.victim).resource(STANDING)["metadata"]["uid"]
        return Prey(self.victim, STANDING, uid)

    def victims_story(self) -> str:
        """Return the operator's log of the victim's latest job: its share of that job's time."""
        lines = [line for line in self.said().splitlines() if f" {self.victim}/good-" in line]
        return "\n".join(lines[-_STORY_LINES:])

    def victims_seconds(self) -> float:
        """Return the time from applying a job of the victim's to its successful end."""
        jobs, name = Jobs(self.kubectl, self.victim), f"good-{uuid.uuid4().hex[:6]}"
        began = time.monotonic()
        jobs.apply(name, _SCRIPT, nodes=2, procsPerNode=1, resources={"requests": {"cpu": "10m"}})
        # `kubectl wait` uses the API server's cache, which is late while a tenant fills it.
        try:
            until(lambda: jobs.status(name).get("completionTime"), PATIENCE_SECONDS)
        except AssertionError as late:
            late.add_note(f"{jobs.status(name)}\n{self.said()[-_TOLD_CHARS:]}")
            raise
        took = time.monotonic() - began
        assert jobs.status(name)["phase"] == "Succeeded", jobs.status(name)["message"]
        jobs.run("delete", f"dtj/{name}", "--wait=false")
        return took

    def plain_seconds(self) -> float:
        """Return the time of an Indexed Job of the same two containers, which the operator doesn't run."""
        name = f"plain-{uuid.uuid4().hex[:6]}"
        inside = f"--namespace={self.victim}"
        began = time.monotonic()
        self.kubectl("apply", inside, "-f", "-", stdin=json.dumps(_plain(name)))
        over = ("get", f"job/{name}", inside, "--output=jsonpath={.status.completionTime}")
        until(lambda: self.kubectl(*over), PATIENCE_SECONDS)
        took = time.monotonic() - began
        self.kubectl("delete", f"job/{name}", inside, "--wait=false")
        return took

    @contextlib.contextmanager
    def evil(self) -> Iterator[str]:
        """Yield a namespace of the tenant's, which is deleted at the end with its content."""
        name = f"evil-{uuid.uuid4().hex[:6]}"
        self.kubectl("create", "namespace", name)
        self.kubectl.wait("create", "serviceaccount/default", f"--namespace={name}")
        try:
            yield name
        finally:
            self._clear(name)

    def _clear(self, name: str) -> None:
        # All at once: one by one takes minutes. The rest is deleted with the namespace.
        self.kubectl("delete", "namespace", name, "--wait=false")
        jobs = f"/apis/muster.dev/v1alpha1/namespaces/{name}/distributedtrainingjobs"
        for path in (jobs, f"/api/v1/namespaces/{name}/pods"):
            with contextlib.suppress(AssertionError):
                self.kubectl("delete", "--raw", f"{path}?gracePeriodSeconds=0")
        # A finalizer of the tenant's blocks the deletion.
        line = "{range .items[?(@.metadata.finalizers)]}{.metadata.name}{'\\n'}{end}"
        inside = f"--namespace={name}"
        for held in self.kubectl("get", "dtj", inside, f"--output=jsonpath={line}").split():
            released = json.dumps({"metadata": {"finalizers": None}})
            with contextlib.suppress(AssertionError):
                self.kubectl("patch", f"dtj/{held}", inside, "--type=merge", "--patch", released)

    @contextlib.contextmanager
    def attacked(
        self, namespace: str, names: Sequence[str], rate: float, seed: int = 1, head_start: float = 0.0
    ) -> Iterator[dict[str, int]]:
        """Yield a tenant attacks; the API server's answers are available at the end.

        The block begins this many seconds after the attack, or earlier if the attack is over.
        """
        tenant = access(self.kubectl, namespace)
        orders = {"access": asdict(tenant), "names": names, "prey": asdict(self.prey), "seed": seed, "rate": rate}
        answers: dict[str, int] = {}
        with subprocess.Popen(
            ["nice", sys.executable, "-P", "-m", "cluster.security.attacker"],
            env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as attacker:
            assert attacker.stdin is not None
            attacker.stdin.write(json.dumps(orders))
            attacker.stdin.close()
            assert attacker.stdout is not None
            try:
                select.select([attacker.stdout], [], [], head_start)
                yield answers
            finally:
                attacker.terminate()
                answers.update(json.loads(attacker.stdout.readline() or "{}"))
                attacker.kill()

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watched]:
        """Watch the operator inside the block."""
        pods = self.pods()
        health = [f"http://{pod['status']['podIP']}:8080/healthz" for pod in pods]
        files = [_memory_file(pod) for pod in pods]
        with watched(self.kubectl, self.release.system, health, lambda: max(_number(file) for file in files)) as seen:
            yield seen

    def pods(self) -> list[Any]:
        """Return the operator's pods."""
        result = self.kubectl("get", "pods", f"--namespace={self.release.system}", *_OURS, "--output=json")
        return list(json.loads(result)["items"])

    def restarts(self) -> int:
        """Return the number of restarts of their containers."""
        return sum(status["restartCount"] for pod in self.pods() for status in pod["status"]["containerStatuses"])

    def said(self) -> str:
        """Return the log of all replicas."""
        return "\n".join(self.release.logs(pod["metadata"]["name"]) for pod in self.pods())


_TOLD_CHARS = 5_000
_STORY_LINES = 8

STANDING = "standing"
"""The victim's job that is the target of attacks."""

_OURS = ("--selector=app.kubernetes.io/name=muster",)


def _plain(name: str) -> Any:
    small = {"requests": {"cpu": "10m"}}
    container = {"name": "trainer", "image": PYTHON_IMAGE, "imagePullPolicy": PULL_POLICY, "resources": small}
    pod = {"restartPolicy": "Never", "containers": [{**container, "command": ["python3", "-c", _SCRIPT]}]}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _memory_file(pod: Any) -> Path:
    """Return the kernel's file with the container's memory: the processes' memory without the page cache."""
    process = machine.processes(pod, "muster")[0]
    for line in Path(f"/proc/{process}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _GROUPS / "memory" / path.lstrip("/") / "memory.stat"
        if not controllers:
            unified = _GROUPS / path.lstrip("/") / "memory.stat"
    return unified


def _number(file: Path) -> int:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0  # the container was restarted: its restart count shows that
    values = dict(line.split() for line in lines)
    return int(values.get("total_rss", values.get("anon", "0")))

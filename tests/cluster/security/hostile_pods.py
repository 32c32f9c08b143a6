"""Pods of a tenant that send the operator useless data: reports, connections, termination messages."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installed.awaited import until
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.say import say
from cluster.security.intruder import Place, Target, progress_of
from cluster.shared import Kubectl
from muster_worker.contract.schema import TOKEN_AUDIENCE

_HERE = Path(__file__)
_FLOOD = _HERE.with_name("flood_workload.py").read_text(encoding="utf-8")
_FUZZ = _HERE.with_name("fuzz_workload.py").read_text(encoding="utf-8")

STOP_SECONDS = 60.0
"""The time to wait for a job or a program to end."""

_SMALL = {"requests": {"cpu": "10m"}}

TERMINATION_MESSAGES = (
    "'\\x1b[31m\\x00\\u202e\\r\\n' * 500",
    "'{\"a\":' * 700",
    "'[' * 4096",
    "'{\"ranks\":[{\"rank\":' + '9' * 4000 + '}]}'",
    "'{\"firstFailure\":' * 200 + '{}' + '}' * 200",
    "b'\\xff\\xfe' * 2000",
)
"""Python that writes termination messages for a pod's termination log."""

_LEAVE = """
import os, sys
word = {word}
with open("/dev/termination-log", "wb") as log:
    log.write(word if isinstance(word, bytes) else word.encode(errors="replace"))
os.write(2, b"\\x1b[2J\\x00\\xff loss=1e999 " * 40000 + b"\\n")
os.kill(os.getppid(), 9)
os._exit(3)
"""


@contextlib.contextmanager
def hostile_pods(kubectl: Kubectl, namespace: str) -> Iterator[None]:
    """Two pods of a job and two others flood the collector; jobs fail with unreadable last lines.

    It begins when all of them have started: that many containers keep the machine busy for seconds.
    """
    jobs = Jobs(kubectl, namespace)
    target, uid = own_job(jobs, "flood", 2)
    kubectl.apply(*(_lurker(namespace, f"lurker-{number}") for number in range(2)))
    kubectl.wait("condition=Ready", "pod/lurker-0", "pod/lurker-1", f"--namespace={namespace}")
    for number, word in enumerate(TERMINATION_MESSAGES):
        jobs.apply(f"words-{number}", _LEAVE.format(word=word), nodes=1, procsPerNode=1, resources=_SMALL)
    for number in range(len(TERMINATION_MESSAGES)):
        jobs.wait(f"words-{number}", "condition=Failed")
    pods = [("flood-0-0", 0), ("flood-1-0", 1), ("lurker-0", 0), ("lurker-1", 1)]
    wanted = [{**asdict(target), "report": progress_of(Place(uid, node))} for _, node in pods]
    with running(jobs, [(pod, _FLOOD, what) for (pod, _), what in zip(pods, wanted, strict=True)]):
        yield


@contextlib.contextmanager
def fuzzed_reports(kubectl: Kubectl, namespace: str, seed: int) -> Iterator[None]:
    """Pods of the tenant's jobs send random variations of their own reports, one pod after the other.

    A report may contain the end of its rank. The operator then ends that job, which kills the program in its pod.
    """
    reporter = _Reporter(Jobs(kubectl, namespace), seed)
    reporter.begin()
    thread = threading.Thread(target=reporter.keep_reporting)
    thread.start()
    try:
        yield
    finally:
        reporter.stop()
        thread.join(STOP_SECONDS)
    assert not thread.is_alive(), "the reporting thread did not stop"
    assert reporter.unexplained is None, reporter.unexplained


class _Reporter:
    """One job of the tenant's at a time, with a program in its pod that sends reports."""

    def __init__(self, jobs: Jobs, seed: int) -> None:
        self._jobs, self._seed = jobs, seed
        self._number = 0
        self._stopping = threading.Event()
        self._program: subprocess.Popen[str] | None = None
        self.unexplained: str | None = None

    @property
    def _name(self) -> str:
        return f"reporting-{self._number}"

    def begin(self) -> None:
        """Start the next job, and the program in its pod."""
        self._number += 1
        target, uid = own_job(self._jobs, self._name, 1)
        wanted = {**asdict(target), "report": progress_of(Place(uid)), "seed": self._seed + self._number}
        self._program = execute(self._jobs, f"{self._name}-0-0", _FUZZ, wanted)

    def keep_reporting(self) -> None:
        """Start another job whenever the operator has ended the last one."""
        try:
            while not self._stopping.is_set():
                assert self._program is not None
                said, _ = self._program.communicate()
                if self._stopping.is_set():
                    return
                until(lambda: self._jobs.status(self._name).get("completionTime"), STOP_SECONDS)
                say(f"fuzz: the reports of {self._name} have ended it: {self._jobs.status(self._name)['message']}")
                self.begin()
        except AssertionError as error:
            if not self._stopping.is_set():
                self.unexplained = (
                    f"{self._name} did not start, or its program ended and the job did not: {error}\n{said[-1000:]}"
                )
        finally:
            # `stop` may have been set while the next one started.
            if self._program is not None and self._program.returncode is None:
                self._program.kill()
                self._program.communicate()

    def stop(self) -> None:
        """Kill the program: `keep_reporting` returns."""
        self._stopping.set()
        if self._program is not None:
            self._program.kill()


def own_job(jobs: Jobs, name: str, nodes: int) -> tuple[Target, str]:
    """Return a running job of the tenant: the collector from its plan, and its uid."""
    jobs.apply(name, FOREVER, nodes=nodes, procsPerNode=1, resources=_SMALL)
    # `kubectl wait` uses the API server's cache, which is late while a tenant fills it: it may not find the job.
    until(lambda: jobs.status(name).get("ranks", {}).get("running") == nodes, STOP_SECONDS)
    settings = json.loads(jobs.run("get", "configmap", f"{name}-muster", "--output=json"))
    plan = json.loads(settings["data"]["plan.json"])
    return Target(plan["collector_url"], plan["collector_ca"]), jobs.resource(name)["metadata"]["uid"]


@contextlib.contextmanager
def running(jobs: Jobs, programs: list[tuple[str, str, dict[str, Any]]]) -> Iterator[None]:
    """Programs in pods: their output doesn't matter, and without a reader they exit."""
    begun: list[subprocess.Popen[str]] = []
    try:
        for pod, program, wanted in programs:
            begun.append(execute(jobs, pod, program, wanted))
        yield
        assert all(one.poll() is None for one in begun), "a program of the tenant's has ended"
    finally:
        for one in begun:
            one.kill()
            one.communicate()


def execute(jobs: Jobs, pod: str, program: str, wanted: dict[str, Any]) -> "subprocess.Popen[str]":
    """Start a Python program in a pod."""
    where = (f"--namespace={jobs.namespace}", "exec", pod, "--", "python3", "-Ic", program, json.dumps(wanted))
    return jobs.kubectl.begin(*where)


def _lurker(namespace: str, name: str) -> dict[str, Any]:
    """Return a pod without a job, with a token for the collector and a job's label."""
    token = {"serviceAccountToken": {"audience": TOKEN_AUDIENCE, "expirationSeconds": 600, "path": "token"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"muster.dev/job-uid": "x"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "trainer",
                    "image": PYTHON_IMAGE,
                    "imagePullPolicy": PULL_POLICY,
                    "command": ["python3", "-c", FOREVER],
                    "volumeMounts": [{"name": "muster", "mountPath": "/muster"}],
                }
            ],
            "volumes": [{"name": "muster", "projected": {"sources": [token]}}],
        },
    }

"""Pods of a tenant's own that give the operator what it can't use: reports, connections, last words."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.security.intruder import Place, Target, progress_of
from cluster.shared import Kubectl
from muster_worker.contract import TOKEN_AUDIENCE

_HERE = Path(__file__)
_FLOOD = _HERE.with_name("flood_workload.py").read_text(encoding="utf-8")
_FUZZ = _HERE.with_name("fuzz_workload.py").read_text(encoding="utf-8")

_SMALL = {"requests": {"cpu": "10m"}}

TERMINATION_MESSAGES = (
    "'\\x1b[31m\\x00\\u202e\\r\\n' * 500",
    "'{\"a\":' * 700",
    "'[' * 4096",
    "'{\"ranks\":[{\"rank\":' + '9' * 4000 + '}]}'",
    "'{\"firstFailure\":' * 200 + '{}' + '}' * 200",
    "b'\\xff\\xfe' * 2000",
)
"""Python that makes what a rank leaves in its pod's termination log."""

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
    """Two pods of a job and two of nobody's flood the collector; jobs fail with last words that nobody can read.

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
    """A pod of a job of the tenant's sends what chance makes of its reports."""
    jobs = Jobs(kubectl, namespace)
    target, uid = own_job(jobs, "reporting", 1)
    wanted = {**asdict(target), "report": progress_of(Place(uid)), "seed": seed}
    with running(jobs, [("reporting-0-0", _FUZZ, wanted)]):
        yield


def own_job(jobs: Jobs, name: str, nodes: int) -> tuple[Target, str]:
    """A job that goes on, as its tenant may have one: the collector, as its plan has it, and its uid."""
    jobs.apply(name, FOREVER, nodes=nodes, procsPerNode=1, resources=_SMALL)
    jobs.wait(name, f"jsonpath={{.status.ranks.running}}={nodes}")
    settings = json.loads(jobs.run("get", "configmap", f"{name}-muster", "--output=json"))
    plan = json.loads(settings["data"]["plan.json"])
    return Target(plan["collector_url"], plan["collector_ca"]), jobs.resource(name)["metadata"]["uid"]


@contextlib.contextmanager
def running(jobs: Jobs, programs: list[tuple[str, str, dict[str, Any]]]) -> Iterator[None]:
    """Programs in pods: what they say is nobody's business, and with nobody who reads they end."""
    begun: list[subprocess.Popen[str]] = []
    try:
        for pod, program, wanted in programs:
            where = (f"--namespace={jobs.namespace}", "exec", pod, "--", "python3", "-Ic", program, json.dumps(wanted))
            begun.append(jobs.kubectl.begin(*where))
        yield
        assert all(one.poll() is None for one in begun), "a program of the tenant's has ended"
    finally:
        for one in begun:
            one.kill()
            one.communicate()


def _lurker(namespace: str, name: str) -> dict[str, Any]:
    """A pod that is nobody's, with a token for the collector and a job's label."""
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

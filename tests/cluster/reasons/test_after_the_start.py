"""Ends of a running job: each has its own reason, and the message names the root cause if it is known."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.node_files import PAUSE_IMAGE
from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import A_SHARE, NOTHING, Stage, template
from cluster.reasons.timeline import Predicate, condition, ended, pod_of, statuses
from cluster.shared import Manifest

# Sixteen MiB at a time, so that the kernel kills it at the limit and not earlier.
GROW = """
import os, time
held = [bytearray(2**24) for _ in range(64) if os.environ["RANK"] == "1"]
time.sleep(600)
"""
# Long enough for trainer to start, and for trainer to see the sidecar fail.
SOME_TIME_THEN_4 = "import time; time.sleep(8); raise SystemExit(4)"
SOME_TIME = "import time; time.sleep(20)"


@dataclass(frozen=True)
class Case:
    """A job, the action once it runs, the action's first sign, and the expected status."""

    name: str
    spec: Callable[[str], dict[str, object]]
    reason: str
    says: tuple[str, ...]
    sign: Predicate | None = None
    act: Callable[[Stage], object] | None = None


def fixed(**spec: object) -> Callable[[str], dict[str, object]]:
    return lambda _: spec


def container(name: str, script: str, **more: object) -> Manifest:
    command = ["python3", "-c", script]
    return {"name": name, "image": PYTHON_IMAGE, "imagePullPolicy": PULL_POLICY, "command": command, **more}


def is_deleted(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def failed_in_pod(pod: Any) -> bool:
    return any(status.get("state", {}).get("terminated", {}).get("exitCode") for status in statuses(pod))


def seat(namespace: str) -> str:
    return f"{namespace}.muster.dev/seat"


def seated(namespace: str) -> Manifest:
    return {"limits": {seat(namespace): "1"}, "requests": {seat(namespace): "1"}}


def evict(stage: Stage) -> None:
    send_eviction(stage, stage.pod("evicted")["metadata"]["name"])


def send_eviction(stage: Stage, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": stage.namespace}}
    path = f"/api/v1/namespaces/{stage.namespace}/pods/{pod}/eviction"
    stage.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(eviction))


def take_the_seat(stage: Stage) -> None:
    spec = {
        "priorityClassName": stage.namespace,
        "terminationGracePeriodSeconds": 1,
        "containers": [container("vip", FOREVER, resources=seated(stage.namespace))],
    }
    metadata = {"name": "vip", "namespace": stage.namespace}
    stage.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


CASES = (
    Case(
        "hungry",
        fixed(
            procsPerNode=2,
            command=["python3", "-c", GROW],
            resources={**A_SHARE, "limits": {"memory": "256Mi"}},
        ),
        "OOMKilled",
        ("Rank 1 on hungry-0 was OOM-killed", "MiB"),
    ),
    Case(
        "killed",
        fixed(resources={**A_SHARE, "limits": {"memory": "256Mi"}}),
        "ContainerKilled",
        ("killed-0", "SIGKILL", "256Mi"),
        pod_of("killed", ended),
        lambda stage: machine.kill(*machine.processes(stage.started_pod("killed"))),
    ),
    Case(
        "deleted",
        fixed(),
        "PodDeleted",
        ("pod deleted-0-0 was deleted, and not by muster",),
        pod_of("deleted", is_deleted),
        lambda stage: stage.jobs.run("delete", "pod", "deleted-0-0", "--wait=false"),
    ),
    Case(
        "evicted",
        fixed(),
        "Evicted",
        ("evicted-0", "it was evicted", "`kubectl drain node-"),
        pod_of("evicted", is_deleted),
        evict,
    ),
    Case(
        "poor",
        lambda namespace: {"template": template({"resources": seated(namespace)})},
        "Preempted",
        ("poor-0", "a pod of a higher priority", "node-1"),
        pod_of("poor", is_deleted),
        take_the_seat,
    ),
    Case(
        "bare",
        fixed(image=PAUSE_IMAGE),
        "AgentNeedsPython",
        ("bare-0", PAUSE_IMAGE, "python3", "set spec.agent.inject to InitContainer"),
        pod_of("bare", ended),
    ),
    Case(
        "unprepared",
        fixed(template=template(initContainers=[container("fetch", "raise SystemExit('no such bucket')")])),
        "InitContainerFailed",
        ("unprepared-0", "init container fetch", "exit code 1"),
        pod_of("unprepared", failed_in_pod),
    ),
)


@pytest.fixture(scope="module")
def put_on(stage: Stage) -> Iterator[None]:
    """Apply all jobs of this module in parallel; the cluster has one slot, and a user who may take it."""
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": stage.namespace}}
    stage.kubectl.apply({**priority, "value": 1000})
    patch_seats(stage, "add", "1")
    for case in CASES:
        stage.apply(case.name, FOREVER, **case.spec(stage.namespace))
    for name, more in SIDECARS.items():
        stage.apply(name, SOME_TIME, template=template(NOTHING, **more))
    yield
    patch_seats(stage, "remove", "1")
    stage.kubectl("delete", "priorityclass", stage.namespace)


def patch_seats(stage: Stage, operation: str, value: str) -> None:
    path = seat(stage.namespace).replace("/", "~1")
    patch = [
        {"op": operation, "path": f"/status/{part}/{path}", "value": value} for part in ("capacity", "allocatable")
    ]
    stage.kubectl("patch", "node", "node-1", "--subresource=status", "--type=json", f"--patch={json.dumps(patch)}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.usefixtures("put_on")
def test_it_fails_for_a_reason_of_its_own(stage: Stage, case: Case) -> None:
    if case.act is not None:
        stage.runs(case.name)
        case.act(stage)
    over = stage.failed(case.name, case.sign, case.reason)
    message = over.status["message"]
    assert all(part in message for part in case.says), message
    assert condition(over, "Accepted")["status"] == "True"
    assert condition(over, "Stalled")["reason"] == case.reason
    # A pod reports its eviction a moment before its deletion; both may be seen.
    stage.warned_once(case.name, "Failed", maybe_before=case.reason)


SIDECARS: dict[str, dict[str, list[Manifest]]] = {
    "beside": {"containers": [container("logs", "raise SystemExit(3)")]},
    "proxied": {"initContainers": [container("proxy", SOME_TIME_THEN_4, restartPolicy="Always")]},
}


@pytest.mark.parametrize(("name", "container", "code"), [("beside", "logs", 3), ("proxied", "proxy", 4)])
@pytest.mark.usefixtures("put_on")
def test_a_failing_sidecar_is_told_and_the_ranks_go_on(stage: Stage, name: str, container: str, code: int) -> None:
    value = stage.wait_for_reason(name, pod_of(name, failed_in_pod), "SidecarFailed")
    assert f"container {container} failed with exit code {code}" in value.status["message"]
    stage.completes(name)
    stage.warned_once(name, "SidecarFailed")

"""Images without Python, one static program and one on musl: the agent brings its own Python from the
operator's image.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.images import PULL_POLICY
from cluster.installation import Installation
from cluster.installed.awaited import until
from cluster.musl_image import musl_image
from cluster.node_files import PAUSE_IMAGE
from cluster.operator.cluster_jobs import Jobs
from cluster.reasons import machine
from cluster.say import say
from cluster.shared import Kubectl, Manifest, SharedCluster
from cluster.waiting import PATIENCE_SECONDS
from support.musl_files import COMMAND


@dataclass(frozen=True)
class Case:
    """An image, the command of its ranks, and the resources that determine the pod's QoS class."""

    name: str
    image: str
    command: tuple[str, ...]
    resources: Manifest
    quality: str


BOUND = {"cpu": "200m", "memory": "128Mi"}
RESTRICTED_POD = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def template() -> Manifest:
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY, "securityContext": RESTRICTED}
    return {"spec": {"terminationGracePeriodSeconds": 6, "securityContext": RESTRICTED_POD, "containers": [trainer]}}


def programs(pod: Any, name: str) -> list[int]:
    """Return the processes of the pod that run this program. A process that has just been forked is still its parent's
    copy.
    """
    return [one for one in machine.processes(pod) if program_of(one) == name]


def program_of(process: int) -> str | None:
    try:
        return Path(f"/proc/{process}/exe").readlink().name
    except FileNotFoundError:
        return None  # it has ended in the meantime


def seconds_to_copy(pod: Any) -> str:
    ended = pod["status"]["initContainerStatuses"][0]["state"]["terminated"]
    return f"{ended['startedAt']} to {ended['finishedAt']}"


@pytest.mark.timeout(300)
def test_its_ranks_are_watched_and_a_killed_one_is_named(
    shared_cluster: SharedCluster, installed_operator: Installation
) -> None:
    musl = musl_image()
    shared_cluster.load(musl)
    cases = (
        Case("static", PAUSE_IMAGE, ("/pause",), {"limits": BOUND}, "Guaranteed"),
        Case("musl", musl.name, COMMAND, {"requests": {"cpu": "50m"}}, "Burstable"),
        Case("modest", PAUSE_IMAGE, ("/pause",), {}, "BestEffort"),
    )
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    jobs = Jobs(kubectl, namespace)
    with restricted(kubectl, namespace):
        for case in cases:
            jobs.apply(
                case.name,
                image=case.image,
                command=case.command,
                resources=case.resources,
                procsPerNode=1,
                agent={"inject": "InitContainer"},
                template=template(),
            )
        for case in cases:
            watched(jobs, case)
    jobs.run("delete", "dtj", *(case.name for case in cases), "--wait=false")


@contextlib.contextmanager
def restricted(kubectl: Kubectl, namespace: str) -> Iterator[None]:
    """Admit only pods of the restricted Pod Security Standard inside the block."""
    profile = "pod-security.kubernetes.io/enforce"
    kubectl("label", "namespace", namespace, f"{profile}=restricted")
    try:
        yield
    finally:
        kubectl("label", "namespace", namespace, f"{profile}-")


def watched(jobs: Jobs, case: Case) -> None:
    """Run a job of the case, which fails because a rank is killed."""
    jobs.wait(case.name, "jsonpath={.status.phase}=Running")
    pod = jobs.started_pod(f"{case.name}-1-0")
    assert pod["status"]["qosClass"] == case.quality
    say(f"{case.name}: its Python was copied from {seconds_to_copy(pod)}")
    program = Path(case.command[0]).name
    until(lambda: programs(pod, program), PATIENCE_SECONDS)
    rank = min(programs(pod, program))  # its children come after it
    # the agent's guardian, the agent, and the rank's wrapper
    assert len(programs(pod, "python3")) == 3
    machine.kill(rank)
    jobs.wait(case.name, "condition=Failed")
    status = jobs.status(case.name)
    assert status["message"].startswith(f"Rank 1 on {case.name}-1 was killed by SIGKILL"), status["message"]

"""muster reports problems before a job's start at once. When they are fixed, the job continues by itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.operator.cluster_jobs import OK
from cluster.reasons.stage import Stage, template
from cluster.reasons.timeline import Predicate, condition, pod_of, says, waits, warned
from cluster.shared import Manifest


@dataclass(frozen=True)
class Case:
    """A job, the first sign of its problem, the expected status, and the fix (None: only its owner can fix it)."""

    name: str
    spec: Callable[[Path], dict[str, object]]
    sign: Predicate
    reason: str
    says: tuple[str, ...]
    mend: Callable[[Stage, Path], object] | None = None
    scheduled: bool = True
    needs_somebody: bool = True


def fixed(**spec: object) -> Callable[[Path], dict[str, object]]:
    return lambda _: spec


def unplaced(pod: Any) -> bool:
    entries = pod.get("status", {}).get("conditions", [])
    return any(entry["type"] == "PodScheduled" and entry["reason"] == "Unschedulable" for entry in entries)


def create(kind: str, *arguments: str) -> Callable[[Stage, Path], object]:
    return lambda stage, _: stage.jobs.run("create", *kind.split(), *arguments)


def label_a_node(stage: Stage, folder: Path) -> None:
    stage.kubectl("label", "node", "node-1", f"{folder.name}=here")


def make_volume(stage: Stage, folder: Path) -> None:
    name = f"{stage.namespace}-data"
    size = {"storage": "1Mi"}
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    stage.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**shared, "capacity": size, "hostPath": {"path": str(folder)}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": stage.namespace},
            "spec": {**shared, "volumeName": name, "resources": {"requests": size}},
        },
    )


def with_volume(name: str, source: Manifest) -> Manifest:
    return template({"volumeMounts": [{"name": name, "mountPath": "/data"}]}, volumes=[{"name": name, **source}])


def from_secret(name: str) -> list[Manifest]:
    return [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}}]


ABSENT = "cluster.muster.dev/absent:1"

CASES = (
    Case(
        "image",
        fixed(image=ABSENT),
        pod_of("image", waits("ErrImageNeverPull")),
        "ImageNotFound",
        (ABSENT, "node-"),
    ),
    Case(
        "pulled",
        fixed(image="registry.invalid/absent:1", template=template({"imagePullPolicy": "Always"})),
        pod_of("pulled", waits("ErrImagePull")),
        "ImagePullFailed",
        ("registry.invalid/absent:1",),
    ),
    Case(
        "secret",
        fixed(env=from_secret("keys")),
        pod_of("secret", waits("CreateContainerConfigError")),
        "ConfigMissing",
        ("Secret keys",),
        create("secret generic keys", "--from-literal=key=1"),
    ),
    Case(
        "settings",
        fixed(template=with_volume("settings", {"configMap": {"name": "settings"}})),
        warned("settings", "FailedMount"),
        "ConfigMissing",
        ("ConfigMap settings", "volume settings"),
        create("configmap settings", "--from-literal=key=1"),
    ),
    Case(
        "folder",
        lambda folder: {
            "template": with_volume("data", {"hostPath": {"path": str(folder / "late"), "type": "Directory"}})
        },
        warned("folder", "FailedMount"),
        "VolumeNotMounted",
        ("volume data", "late", "node-"),
        lambda _, folder: (folder / "late").mkdir(),
    ),
    Case(
        "claim",
        fixed(template=with_volume("data", {"persistentVolumeClaim": {"claimName": "data"}})),
        pod_of("claim", unplaced),
        "VolumeClaimMissing",
        ("PersistentVolumeClaim data", "create it"),
        make_volume,
        scheduled=False,
    ),
    Case(
        "room",
        fixed(nodes=2, resources={"requests": {"cpu": "640"}}),
        pod_of("room", unplaced),
        "Unschedulable",
        ("none of 3 nodes has room: ", "2 lack cpu"),
        scheduled=False,
        needs_somebody=False,
    ),
    Case(
        "labelled",
        lambda folder: {"template": template(nodeSelector={folder.name: "here"})},
        pod_of("labelled", unplaced),
        "Unschedulable",
        ("none of 3 nodes fits: ", "2 don't match its node selector"),
        label_a_node,
        scheduled=False,
        needs_somebody=False,
    ),
)


@pytest.fixture(scope="module")
def put_on(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Apply all jobs of this module in parallel; return a folder for the fixes, with a unique name."""
    folder = tmp_path_factory.mktemp(stage.namespace)
    for case in CASES:
        stage.apply(case.name, OK, **case.spec(folder))
    yield folder
    # a job that waits for room counts against the quotas of other tests
    stage.jobs.run("delete", *(f"dtj/{case.name}" for case in CASES))
    stage.kubectl("label", "node", "node-1", f"{folder.name}-")
    stage.kubectl("delete", "persistentvolume", f"{stage.namespace}-data", "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_told(stage: Stage, put_on: Path, case: Case) -> None:
    value = stage.wait_for_reason(case.name, case.sign, case.reason, "Stalled" if case.needs_somebody else "Scheduled")
    message = value.status["message"]
    assert all(part in message for part in case.says), message
    assert condition(value, "Accepted")["status"] == "True"
    assert condition(value, "Scheduled")["status"] == str(case.scheduled)
    stage.warned_once(case.name, case.reason)
    if case.mend is not None:
        case.mend(stage, put_on)


@pytest.mark.parametrize("case", [case for case in CASES if case.mend is not None], ids=lambda case: case.name)
@pytest.mark.usefixtures("put_on")
def test_it_passes_once_it_is_mended(stage: Stage, case: Case) -> None:
    stage.completes(case.name)


def test_a_pod_that_somebody_deletes_is_made_anew(stage: Stage) -> None:
    stage.apply("again", nodes=2, env=from_secret("late"))
    stage.timeline.first(says("again", "ConfigMissing"))
    stage.timeline.first(pod_of("again", waits("CreateContainerConfigError")))
    stage.jobs.run("delete", "pod", "again-0-0", "--wait=false")
    stage.timeline.first(lambda seen: seen.kind == "Pod" and seen.name == "again-0-1")
    stage.jobs.run("create", "secret", "generic", "late", "--from-literal=key=1")
    stage.completes("again")
    assert stage.jobs.children("again", "pods") == {"pod/again-0-1", "pod/again-1-0"}

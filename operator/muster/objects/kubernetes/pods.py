"""A job's pod as the operator sees it, read from the API server's object. Pure.

Pods are written by kubelets and schedulers of many releases, and by users who may write pods in the namespace: what is
absent or of an unexpected shape counts as not said, and what isn't a job's pod is none of muster's business.
"""

import re
from dataclasses import dataclass, replace

from muster.api.json_fields import mapping, objects, string, whole
from muster.api.names import GROUP, KIND
from muster.objects.kubernetes.containers import Container, Waiting, read_containers, seconds, text
from muster.objects.kubernetes.kinds import PODS, Object, Reading
from muster.objects.kubernetes.names import (
    SPEC_HASH_ANNOTATION,
    TRAINER,
    pod_name,
)

JOB_PODS = replace(
    PODS,
    reading=Reading(
        # Whatever else has the label: without such an owner it is no pod of a job's.
        marker=f'"{KIND}"'.encode(),
        metadata=frozenset(
            {
                *("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"),
                *("annotations", "ownerReferences"),
            }
        ),
        parts=frozenset({"spec", "status"}),
        max_bytes={"metadata.ownerReferences": 16 * 1024},
    ),
)
"""Pods as far as `read_pod` looks at them."""

MAX_ENTRIES = 64
"""Of each list of a pod that are looked at: a tenant's pod may have thousands, each of which would be kept."""

MAX_NODES = 10_000
"""A job's nodes at most: of a pod with a higher number no job of muster's knows."""

POD_BYTES = 2_000
CONTAINER_BYTES = 600
CONDITION_BYTES = 200
"""What a pod, its containers and its conditions take without their texts: measured."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBERS = 2
"""Of a pod's name: its node's, and its replacement."""


@dataclass(frozen=True)
class Condition:
    """One of the pod's conditions; `at` is when it became so (Unix seconds)."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""
    at: float | None = None


@dataclass(frozen=True)
class PodView:
    """A pod of a job. Times are Unix seconds; texts are "" where nothing is said.

    `machine` is the cluster's node. `asked_to_go_at` is when its deletion was asked for, `leaving_seconds` how long
    that may take. `others` are the containers beside `trainer`, `inits` those before it, sidecars among them.
    `claims` are the PersistentVolumeClaims that it
    mounts, `gates` what holds it back from the scheduler. `grace_seconds` is from SIGTERM to SIGKILL.
    """

    name: str
    namespace: str
    uid: str
    job_uid: str
    node: int
    replacement: int
    phase: str
    trainer: Container
    reason: str = ""
    message: str = ""
    spec_hash: str = ""
    machine: str = ""
    ip: str = ""
    asked_to_go_at: float | None = None
    leaving_seconds: int | None = None
    conditions: tuple[Condition, ...] = ()
    inits: tuple[Container, ...] = ()
    others: tuple[Container, ...] = ()
    claims: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    grace_seconds: int | None = None

    @property
    def weight(self) -> int:
        """About how many bytes of memory it takes, with what is worked out from it."""
        containers = (self.trainer, *self.inits, *self.others)
        texts = [self.message, *(entry.message for entry in self.conditions), *self.claims, *self.gates]
        parts = len(containers) * CONTAINER_BYTES + len(self.conditions) * CONDITION_BYTES
        # Up to four bytes a character.
        return POD_BYTES + parts + 4 * (sum(map(len, texts)) + sum(one.chars for one in containers))

    def condition(self, kind: str) -> Condition | None:
        """The pod's condition of this type."""
        return next((entry for entry in self.conditions if entry.type == kind), None)


def owner_uid(source: Object) -> str:
    """The uid of the job that controls an object; "" when none does."""
    return string(_owner(source).get("uid"))


def read_pod(source: Object) -> PodView | None:
    """The job's pod that `source` is; None unless its owner and its name agree on whose it is.

    Both are for good. Its labels are for people and selectors: who changes them changes nothing.
    """
    metadata, spec, status = (mapping(source.get(part)) for part in ("metadata", "spec", "status"))
    uid, name, owner = string(metadata.get("uid")), string(metadata.get("name")), _owner(source)
    job_uid, place = string(owner.get("uid")), _place(name, string(owner.get("name")))
    if not uid or not job_uid or place is None:
        return None
    node, replacement = place
    containers = read_containers(spec.get("containers"), status.get("containerStatuses"))
    return PodView(
        name=name,
        namespace=string(metadata.get("namespace")),
        uid=uid,
        job_uid=job_uid,
        node=node,
        replacement=replacement,
        phase=string(status.get("phase")),
        trainer=next((one for one in containers if one.name == TRAINER), Container(TRAINER, "", Waiting())),
        reason=text(status.get("reason")),
        message=text(status.get("message")),
        spec_hash=text(mapping(metadata.get("annotations")).get(SPEC_HASH_ANNOTATION)),
        machine=string(spec.get("nodeName")),
        ip=string(status.get("podIP")),
        asked_to_go_at=_asked_to_go_at(metadata),
        leaving_seconds=whole(metadata.get("deletionGracePeriodSeconds")),
        conditions=tuple(map(_condition, objects(status.get("conditions"))[:MAX_ENTRIES])),
        inits=read_containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        others=tuple(one for one in containers if one.name != TRAINER),
        claims=tuple(_claims(spec)[:MAX_ENTRIES]),
        gates=tuple(string(gate.get("name")) for gate in objects(spec.get("schedulingGates"))[:MAX_ENTRIES]),
        grace_seconds=whole(spec.get("terminationGracePeriodSeconds")),
    )


def _owner(source: Object) -> Object:
    for owner in objects(mapping(source.get("metadata")).get("ownerReferences")):
        is_job = string(owner.get("apiVersion")).startswith(f"{GROUP}/") and owner.get("kind") == KIND
        if is_job and owner.get("controller") is True:
            return owner
    return {}


def _place(name: str, job: str) -> tuple[int, int] | None:
    """Node and replacement of the job's pod of this name; None when no pod of the job is called so."""
    numbers = name.rsplit("-", 2)[1:]
    if len(numbers) != _NUMBERS or not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    node, replacement = map(int, numbers)
    is_jobs = job and node < MAX_NODES and name == pod_name(job, node, replacement)
    return (node, replacement) if is_jobs else None


def _condition(source: Object) -> Condition:
    return Condition(
        type=string(source.get("type")),
        is_true=source.get("status") == "True",
        reason=text(source.get("reason")),
        message=text(source.get("message")),
        at=seconds(source.get("lastTransitionTime")),
    )


def _asked_to_go_at(metadata: Object) -> float | None:
    # The API server writes down when the grace will be over.
    at = seconds(metadata.get("deletionTimestamp"))
    return None if at is None else at - (whole(metadata.get("deletionGracePeriodSeconds")) or 0)


def _claims(spec: Object) -> list[str]:
    volumes = (mapping(volume.get("persistentVolumeClaim")) for volume in objects(spec.get("volumes")))
    return [string(claim.get("claimName")) for claim in volumes if claim]

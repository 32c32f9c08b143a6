"""A job's pod as the operator sees it, read from the API server's object. Pure.

Pods are written by kubelets and schedulers of many releases, and by whoever may write pods in the namespace: what is
absent or of an unexpected shape counts as not said, and what isn't a job's pod is none of muster's business.
"""

import re
from dataclasses import dataclass

from muster.api.names import GROUP, KIND
from muster.backends.kubernetes.containers import Container, Waiting, read_containers, seconds, whole
from muster.backends.kubernetes.names import (
    GENERATION_LABEL,
    JOB_LABEL,
    JOB_UID_LABEL,
    NODE_LABEL,
    SPEC_HASH_ANNOTATION,
    TRAINER,
    pod_name,
)
from muster.kube.answers import mapping, objects, string
from muster.kube.kinds import Object

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


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

    `machine` is the cluster's node. `asked_to_go_at` is when its deletion was asked for. `others` are the containers
    beside `trainer`, `inits` those before it, sidecars among them. `claims` are the PersistentVolumeClaims that it
    mounts, `gates` what holds it back from the scheduler. `grace_seconds` is from SIGTERM to SIGKILL.
    """

    name: str
    namespace: str
    uid: str
    job_uid: str
    node: int
    generation: int
    phase: str
    trainer: Container
    reason: str = ""
    message: str = ""
    spec_hash: str = ""
    machine: str = ""
    ip: str = ""
    asked_to_go_at: float | None = None
    conditions: tuple[Condition, ...] = ()
    inits: tuple[Container, ...] = ()
    others: tuple[Container, ...] = ()
    claims: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    grace_seconds: int | None = None

    def condition(self, kind: str) -> Condition | None:
        """The pod's condition of this type."""
        return next((entry for entry in self.conditions if entry.type == kind), None)


def owner_uid(source: Object) -> str:
    """The uid of the job that controls an object; "" when none does."""
    for owner in objects(mapping(source.get("metadata")).get("ownerReferences")):
        is_job = string(owner.get("apiVersion")).startswith(f"{GROUP}/") and owner.get("kind") == KIND
        if is_job and owner.get("controller") is True:
            return string(owner.get("uid"))
    return ""


def read_pod(source: Object) -> PodView | None:
    """The job's pod that `source` is; None unless its owner, its labels and its name agree on whose it is."""
    metadata, spec, status = (mapping(source.get(part)) for part in ("metadata", "spec", "status"))
    labels = mapping(metadata.get("labels"))
    job, node, generation = (
        string(labels.get(JOB_LABEL)),
        _number(labels, NODE_LABEL),
        _number(labels, GENERATION_LABEL),
    )
    uid, job_uid, name = string(metadata.get("uid")), owner_uid(source), string(metadata.get("name"))
    if not uid or not job_uid or labels.get(JOB_UID_LABEL) != job_uid or node is None or generation is None:
        return None
    if name != pod_name(job, node, generation):
        return None
    containers = read_containers(spec.get("containers"), status.get("containerStatuses"))
    return PodView(
        name=name,
        namespace=string(metadata.get("namespace")),
        uid=uid,
        job_uid=job_uid,
        node=node,
        generation=generation,
        phase=string(status.get("phase")),
        trainer=next((one for one in containers if one.name == TRAINER), Container(TRAINER, "", Waiting())),
        reason=string(status.get("reason")),
        message=string(status.get("message")),
        spec_hash=string(mapping(metadata.get("annotations")).get(SPEC_HASH_ANNOTATION)),
        machine=string(spec.get("nodeName")),
        ip=string(status.get("podIP")),
        asked_to_go_at=_asked_to_go_at(metadata),
        conditions=tuple(map(_condition, objects(status.get("conditions")))),
        inits=read_containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        others=tuple(one for one in containers if one.name != TRAINER),
        claims=tuple(_claims(spec)),
        gates=tuple(string(gate.get("name")) for gate in objects(spec.get("schedulingGates"))),
        grace_seconds=whole(spec.get("terminationGracePeriodSeconds")),
    )


def _number(labels: Object, label: str) -> int | None:
    text = string(labels.get(label))
    return int(text) if _NUMBER.fullmatch(text) else None


def _condition(source: Object) -> Condition:
    return Condition(
        type=string(source.get("type")),
        is_true=source.get("status") == "True",
        reason=string(source.get("reason")),
        message=string(source.get("message")),
        at=seconds(source.get("lastTransitionTime")),
    )


def _asked_to_go_at(metadata: Object) -> float | None:
    # The API server writes down when the grace will be over.
    at = seconds(metadata.get("deletionTimestamp"))
    return None if at is None else at - (whole(metadata.get("deletionGracePeriodSeconds")) or 0)


def _claims(spec: Object) -> list[str]:
    volumes = (mapping(volume.get("persistentVolumeClaim")) for volume in objects(spec.get("volumes")))
    return [string(claim.get("claimName")) for claim in volumes if claim]

"""Parse a job's pod from the API server's object. Pure.

Kubelets and schedulers of many releases write pods, and so do users. So unexpected values count as absent. Pods that
don't belong to a job are ignored.
"""

import re
from dataclasses import dataclass, replace

from muster.api.json_fields import read_integer, read_mapping, read_mappings, read_string
from muster.api.names import GROUP, KIND
from muster.api.spec.limits import MAX_NODES_WITH_SPARES
from muster.objects.kubernetes.containers import (
    Container,
    Waiting,
    parse_optional_timestamp,
    read_containers,
    read_truncated_text,
)
from muster.objects.kubernetes.kinds import PODS, Object, ParseOptions
from muster.objects.kubernetes.kueue import MANAGED_LABEL, POD_GROUP_LABEL
from muster.objects.kubernetes.names import (
    SPEC_HASH_ANNOTATION,
    TRAINER_CONTAINER,
    build_pod_name,
)

_SMALL_BYTES = 16 * 1024
"""More than a usual pod has. No field of a smaller pod is too long."""

JOB_PODS = replace(
    PODS,
    parse_options=ParseOptions(
        # Skip pods that have the label but no job as their owner.
        required_text=f'"{KIND}"'.encode(),
        metadata=frozenset(
            {
                *("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"),
                *("labels", "annotations", "ownerReferences"),
            }
        ),
        parts=frozenset({"spec", "status"}),
        max_bytes={"metadata.ownerReferences": _SMALL_BYTES},
        whole_bytes=_SMALL_BYTES,
    ),
)
"""The pods, with the fields that `read_pod` needs."""

MAX_ENTRIES = 64
"""The maximum number of entries in each list of a pod, because a user's pod may have thousands."""

FINAL_PHASES = ("Failed", "Succeeded")

POD_BYTES = 2_000
CONTAINER_BYTES = 600
CONDITION_BYTES = 200
"""The measured memory of a pod, a container and a condition, without their texts."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBER_COUNT = 2
"""A pod's name ends with two numbers: its node and its replacement number."""


@dataclass(frozen=True)
class Condition:
    """A condition of a pod; `at` is the time of its last transition (Unix seconds)."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""
    at: float | None = None


@dataclass(frozen=True)
class KueueMarks:
    """The marks of Kueue: the name of the pod's group, "" without one, and whether Kueue manages the pod."""

    group: str = ""
    is_managed: bool = False


@dataclass(frozen=True)
class PodView:
    """A pod of a job. Times are Unix seconds; absent texts are "".

    `kube_node` is the pod's nodeName. `deletion_grace_seconds` is the grace period of a requested deletion,
    `grace_seconds` the one in the spec. `other_containers` are the containers except `trainer`, `init_containers` the
    init containers and sidecars. `volume_claims` are the names of the PersistentVolumeClaims, `scheduling_gates` the
    names of the scheduling gates. `tolerated_taints` are the keys of the taints that the pod tolerates without a time
    limit; "" tolerates all.
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
    kube_node: str = ""
    ip: str = ""
    deletion_requested_at: float | None = None
    deletion_grace_seconds: int | None = None
    conditions: tuple[Condition, ...] = ()
    init_containers: tuple[Container, ...] = ()
    other_containers: tuple[Container, ...] = ()
    volume_claims: tuple[str, ...] = ()
    scheduling_gates: tuple[str, ...] = ()
    tolerated_taints: tuple[str, ...] = ()
    grace_seconds: int | None = None
    kueue: KueueMarks = KueueMarks()

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the pod and the data derived from it take, in bytes."""
        containers = (self.trainer, *self.init_containers, *self.other_containers)
        texts = [
            self.message,
            *(entry.message for entry in self.conditions),
            *self.volume_claims,
            *self.scheduling_gates,
            *self.tolerated_taints,
        ]
        parts = len(containers) * CONTAINER_BYTES + len(self.conditions) * CONDITION_BYTES
        # A character takes up to four bytes.
        return POD_BYTES + parts + 4 * (sum(map(len, texts)) + sum(container.text_length for container in containers))

    def find_condition(self, condition_type: str) -> Condition | None:
        """Return the pod's condition of this type, if any."""
        return next((entry for entry in self.conditions if entry.type == condition_type), None)


def read_owner_uid(source: Object) -> str:
    """Return the uid of the job that owns the object; "" without one."""
    return read_string(_find_owner(source).get("uid"))


def read_pod(source: Object) -> PodView | None:
    """Parse a job's pod; None unless its owner reference and its name belong to the same job.

    Labels don't tell the job, because users may change them.
    """
    metadata, spec, status = (read_mapping(source.get(part)) for part in ("metadata", "spec", "status"))
    uid, name, owner = read_string(metadata.get("uid")), read_string(metadata.get("name")), _find_owner(source)
    job_uid, numbers = read_string(owner.get("uid")), _parse_name(name, read_string(owner.get("name")))
    if not uid or not job_uid or numbers is None:
        return None
    node, replacement = numbers
    containers = read_containers(spec.get("containers"), status.get("containerStatuses"))
    return PodView(
        name=name,
        namespace=read_string(metadata.get("namespace")),
        uid=uid,
        job_uid=job_uid,
        node=node,
        replacement=replacement,
        phase=read_string(status.get("phase")),
        trainer=next(
            (container for container in containers if container.name == TRAINER_CONTAINER),
            Container(TRAINER_CONTAINER, "", Waiting()),
        ),
        reason=read_truncated_text(status.get("reason")),
        message=read_truncated_text(status.get("message")),
        spec_hash=read_truncated_text(read_mapping(metadata.get("annotations")).get(SPEC_HASH_ANNOTATION)),
        kube_node=read_string(spec.get("nodeName")),
        ip=read_string(status.get("podIP")),
        deletion_requested_at=_read_deletion_time(metadata),
        deletion_grace_seconds=read_integer(metadata.get("deletionGracePeriodSeconds")),
        conditions=tuple(map(_read_condition, read_mappings(status.get("conditions"))[:MAX_ENTRIES])),
        init_containers=read_containers(spec.get("initContainers"), status.get("initContainerStatuses")),
        other_containers=tuple(container for container in containers if container.name != TRAINER_CONTAINER),
        volume_claims=tuple(_list_volume_claims(spec)[:MAX_ENTRIES]),
        scheduling_gates=tuple(_list_scheduling_gates(spec)[:MAX_ENTRIES]),
        tolerated_taints=tuple(_list_tolerated_taints(spec)[:MAX_ENTRIES]),
        grace_seconds=read_integer(spec.get("terminationGracePeriodSeconds")),
        kueue=_read_kueue_marks(read_mapping(metadata.get("labels"))),
    )


def _find_owner(source: Object) -> Object:
    for owner in read_mappings(read_mapping(source.get("metadata")).get("ownerReferences")):
        is_job = read_string(owner.get("apiVersion")).startswith(f"{GROUP}/") and owner.get("kind") == KIND
        if is_job and owner.get("controller") is True:
            return owner
    return {}


def _parse_name(name: str, job: str) -> tuple[int, int] | None:
    """Return the node and the replacement number in the name of a job's pod; None for other names."""
    numbers = name.rsplit("-", 2)[1:]
    if len(numbers) != _NUMBER_COUNT or not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    node, replacement = map(int, numbers)
    belongs_to_job = job and node < MAX_NODES_WITH_SPARES and name == build_pod_name(job, node, replacement)
    return (node, replacement) if belongs_to_job else None


def _read_condition(source: Object) -> Condition:
    return Condition(
        type=read_string(source.get("type")),
        is_true=source.get("status") == "True",
        reason=read_truncated_text(source.get("reason")),
        message=read_truncated_text(source.get("message")),
        at=parse_optional_timestamp(source.get("lastTransitionTime")),
    )


def _read_kueue_marks(labels: Object) -> KueueMarks:
    return KueueMarks(read_truncated_text(labels.get(POD_GROUP_LABEL)), labels.get(MANAGED_LABEL) == "true")


def _read_deletion_time(metadata: Object) -> float | None:
    # deletionTimestamp is the end of the grace period.
    at = parse_optional_timestamp(metadata.get("deletionTimestamp"))
    return None if at is None else at - (read_integer(metadata.get("deletionGracePeriodSeconds")) or 0)


def _list_volume_claims(spec: Object) -> list[str]:
    volumes = (read_mapping(volume.get("persistentVolumeClaim")) for volume in read_mappings(spec.get("volumes")))
    return [read_string(claim.get("claimName")) for claim in volumes if claim]


def _list_scheduling_gates(spec: Object) -> list[str]:
    return [read_string(gate.get("name")) for gate in read_mappings(spec.get("schedulingGates"))]


def _list_tolerated_taints(spec: Object) -> list[str]:
    tolerations = read_mappings(spec.get("tolerations"))
    return [read_string(entry.get("key")) for entry in tolerations if entry.get("tolerationSeconds") is None]

"""Select the machines for a job's pods, and their placement relative to each other. Pure."""

from collections.abc import Iterator

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.api.spec.node_pool import TYPE_LABEL, NodePool
from muster.objects.kubernetes.names import JOB_UID_LABEL
from muster.render.kubernetes.hardware import uses_efa
from muster.render.kubernetes.machine_type import pool_source
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import PodPatch, in_spec

ZONE_LABEL = "topology.kubernetes.io/zone"
HOST_LABEL = "kubernetes.io/hostname"
"""Kubernetes' well-known labels of a node."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def machines(job: Job) -> tuple[PodPatch, ...]:
    """Select machines by their labels and taints."""
    pool, source = job.spec.node_pool, pool_source(job)
    return () if pool is None else tuple(_machines(pool, source))


def _machines(pool: NodePool, source: str) -> Iterator[PodPatch]:
    if pool.instance_type is not None:
        yield PodPatch(in_spec({"nodeSelector": {TYPE_LABEL: pool.instance_type}}), source, "machines of this type")
    for name, value in pool.node_selector.items():
        yield PodPatch(in_spec({"nodeSelector": {name: value}}), source, "the pool's machines have this label")
    for toleration in pool.tolerations:
        tolerations: list[JSON] = [dict(toleration)]
        yield PodPatch(in_spec({"tolerations": tolerations}), source, "the pool's machines have such a taint")


def relative_placement(job: Job, pod: Fields) -> tuple[PodPatch, ...]:
    """Place the job's nodes relative to each other; a single node needs no such rule."""
    return () if job.spec.nodes == 1 else tuple(_neighbourhood(job, pod))


def _neighbourhood(job: Job, pod: Fields) -> Iterator[PodPatch]:
    pool, source = job.spec.node_pool or NodePool(), pool_source(job)
    if pool.zone == "Same":
        yield _affinity(job, ZONE_LABEL, source, "all nodes in one zone")
    elif pool.zone is None and uses_efa(pod):
        yield _affinity(job, ZONE_LABEL, "muster", "EFA's traffic stays within its zone; zone: Any lifts this")
    for label in pool.same_labels:
        yield _affinity(job, label, source, "all nodes on machines with the same value of this label")
    if job.spec.node_pool is not None and pool.machine != "Any":
        why = "each node has a machine of its own; machine: Any lifts this"
        yield PodPatch(in_spec({"affinity": {"podAntiAffinity": _required(job, HOST_LABEL)}}), source, why)


def _affinity(job: Job, label: str, source: str, why: str) -> PodPatch:
    return PodPatch(in_spec({"affinity": {"podAffinity": _required(job, label)}}), source, why)


def _required(job: Job, label: str) -> Fields:
    # The scheduler accepts the first pod although no other pod matches yet, because it matches its own selector.
    term: Fields = {"labelSelector": {"matchLabels": {JOB_UID_LABEL: job.metadata.uid}}, "topologyKey": label}
    terms: list[JSON] = [term]
    return {_REQUIRED: terms}

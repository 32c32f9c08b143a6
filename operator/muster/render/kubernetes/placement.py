"""Select the machines for a job's pods, and place the pods near or away from each other. Pure."""

from collections.abc import Iterator, Sequence

from muster.api.document import JSON
from muster.api.names import JOB_UID_LABEL
from muster.api.spec.job import Job
from muster.api.spec.node_pool import TYPE_LABEL, NodePool
from muster.render.kubernetes.hardware import uses_efa
from muster.render.kubernetes.machine_type import get_pool_source
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, wrap_in_spec

ZONE_LABEL = "topology.kubernetes.io/zone"
HOST_LABEL = "kubernetes.io/hostname"
"""Well-known labels of a Kubernetes Node."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_WEIGHT = 100


def make_node_pool_patches(job: Job) -> tuple[PodPatch, ...]:
    """Select the machines of the job's node pool by their labels and taints."""
    pool, source = job.spec.node_pool, get_pool_source(job)
    return () if pool is None else tuple(_make_pool_patches(pool, source))


def _make_pool_patches(pool: NodePool, source: str) -> Iterator[PodPatch]:
    if pool.instance_type is not None:
        yield PodPatch(
            wrap_in_spec({"nodeSelector": {TYPE_LABEL: pool.instance_type}}), source, "machines of this type"
        )
    for name, value in pool.node_selector.items():
        yield PodPatch(wrap_in_spec({"nodeSelector": {name: value}}), source, "the pool's machines have this label")
    for toleration in pool.tolerations:
        tolerations: list[JSON] = [dict(toleration)]
        yield PodPatch(wrap_in_spec({"tolerations": tolerations}), source, "the pool's machines have this taint")


def make_avoidance_patches(avoided_nodes: Sequence[str]) -> tuple[PodPatch, ...]:
    """Let the scheduler prefer other Kubernetes nodes than these."""
    if not avoided_nodes:
        return ()
    names: list[JSON] = [*avoided_nodes]
    expressions: list[JSON] = [{"key": HOST_LABEL, "operator": "NotIn", "values": names}]
    terms: list[JSON] = [{"weight": _MAX_WEIGHT, "preference": {"matchExpressions": expressions}}]
    reason = "the job has failed on these nodes: see status.restarts.avoidedNodes"
    return (PodPatch(wrap_in_spec({"affinity": {"nodeAffinity": {_PREFERRED: terms}}}), MUSTER, reason),)


def make_placement_patches(job: Job, pod: Fields) -> tuple[PodPatch, ...]:
    """Place the job's pods near or away from each other. A single pod needs no such rule."""
    return () if job.spec.max_nodes + job.spec.spares == 1 else tuple(_make_affinity_patches(job, pod))


def _make_affinity_patches(job: Job, pod: Fields) -> Iterator[PodPatch]:
    pool, source = job.spec.node_pool or NodePool(), get_pool_source(job)
    if pool.zone == "Same":
        yield _make_affinity_patch(job, ZONE_LABEL, source, "all nodes in one zone")
    elif pool.zone is None and uses_efa(pod):
        yield _make_affinity_patch(
            job, ZONE_LABEL, "muster", "EFA works only within a zone; zone: Any removes this rule"
        )
    for label in pool.same_labels:
        yield _make_affinity_patch(job, label, source, "all nodes on machines with the same value of this label")
    if job.spec.node_pool is not None and pool.machine != "Any":
        reason = "each pod runs on its own machine; machine: Any removes this rule"
        yield PodPatch(
            wrap_in_spec({"affinity": {"podAntiAffinity": _make_required_terms(job, HOST_LABEL)}}), source, reason
        )
    elif job.spec.spares:
        reason = "a lost machine should take one pod only, so that a spare can replace it"
        yield PodPatch(
            wrap_in_spec({"affinity": {"podAntiAffinity": _make_preferred_terms(job, HOST_LABEL)}}),
            "spec.spares",
            reason,
        )


def _make_affinity_patch(job: Job, label: str, source: str, reason: str) -> PodPatch:
    return PodPatch(wrap_in_spec({"affinity": {"podAffinity": _make_required_terms(job, label)}}), source, reason)


def _make_required_terms(job: Job, label: str) -> Fields:
    # The scheduler also accepts the first pod, because it matches its own selector.
    terms: list[JSON] = [_make_affinity_term(job, label)]
    return {_REQUIRED: terms}


def _make_preferred_terms(job: Job, label: str) -> Fields:
    terms: list[JSON] = [{"weight": _MAX_WEIGHT, "podAffinityTerm": _make_affinity_term(job, label)}]
    return {_PREFERRED: terms}


def _make_affinity_term(job: Job, label: str) -> Fields:
    """Return the affinity term for the job's pods on Kubernetes nodes with the same value of the label."""
    return {"labelSelector": {"matchLabels": {JOB_UID_LABEL: job.metadata.uid}}, "topologyKey": label}

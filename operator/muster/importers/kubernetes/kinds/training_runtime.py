"""Read a TrainingRuntime or ClusterTrainingRuntime (trainer.kubeflow.org/v1alpha1) of a TrainJob. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.kinds.job_set import (
    ReplicatedJob,
    SetPolicy,
    read_replicated_jobs,
    read_set_policies,
)
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.report import Location
from muster.importers.kubernetes.restarts import RestartLimit

TRAINER_STEP = "trainer"
NODE = "node"
LAUNCHER = "launcher"

_IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "Intel": "IntelMPI", "MPICH": "MPICH"}
_OTHER_POLICIES = ("flux", "jax", "xgboost", "plainML")


@dataclass(frozen=True)
class MpiPolicy:
    """mlPolicy.mpi."""

    implementation: str | None
    runs_on_launcher: bool


@dataclass(frozen=True)
class ElasticNodes:
    """mlPolicy.torch.elasticPolicy. The numbers are None if they are unset."""

    minimum: int | None
    maximum: int | None
    restarts: RestartLimit | None
    metrics: list[JSON]
    location: Location


@dataclass(frozen=True)
class Runtime:
    """A runtime. `procs` is any value of numProcPerNode; None if it is unset."""

    fields: Fields
    nodes: int | None
    nodes_location: Location
    procs: JSON
    procs_location: Location
    is_torch: bool
    mpi: MpiPolicy | None
    elastic: ElasticNodes | None
    queue: Mapping[str, JSON]
    queue_location: Location
    set_policy: SetPolicy
    jobs: list[ReplicatedJob]
    annotations: dict[str, JSON]


def read_runtime(root: Fields) -> Runtime:
    """Read the runtime's fields."""
    root.take("apiVersion")
    root.take("kind")
    own_metadata = read_metadata(root)
    for name, value in (("labels", own_metadata.labels), ("annotations", own_metadata.annotations)):
        if value:
            root.report.note(root.locate("metadata", name), "left out: they are the runtime's own")
    spec = root.take_fields("spec")
    policy = spec.take_fields("mlPolicy")
    for name in _OTHER_POLICIES:
        policy.refuse(name, "muster starts ranks with torchrun or mpirun; use a runtime with torch or mpi")
    torch, mpi = policy.take_fields("torch"), policy.take_fields("mpi")
    procs_fields = mpi if mpi.names else torch
    template = spec.take_fields("template")
    metadata = template.take_fields("metadata")
    labels, annotations = metadata.take_text_map("labels"), metadata.take_text_map("annotations")
    if labels:
        spec.report.note(metadata.locate("labels"), "muster creates no JobSet that could have them")
    set_spec = template.take_fields("spec")
    queue, queue_location = _read_group_policy(spec.take_fields("podGroupPolicy"), annotations)
    return Runtime(
        fields=spec,
        nodes=policy.take_integer("numNodes", 1),
        nodes_location=policy.locate("numNodes"),
        procs=procs_fields.take("numProcPerNode"),
        procs_location=procs_fields.locate("numProcPerNode"),
        is_torch=policy.has("torch"),
        mpi=_read_mpi(mpi) if policy.has("mpi") else None,
        elastic=_read_elastic(torch.take_fields("elasticPolicy")),
        queue=queue,
        queue_location=queue_location,
        set_policy=read_set_policies(set_spec),
        jobs=read_replicated_jobs(set_spec),
        annotations=annotations,
    )


def _read_mpi(fields: Fields) -> MpiPolicy:
    fields.ignore("sshAuthMountPath", "muster's agents start mpirun's daemons without ssh")
    implementation = fields.take_choice("mpiImplementation", tuple(_IMPLEMENTATIONS))
    return MpiPolicy(
        implementation=None if implementation is None else _IMPLEMENTATIONS[implementation],
        runs_on_launcher=fields.take_boolean("runLauncherAsNode") is True,
    )


def _read_elastic(fields: Fields) -> ElasticNodes | None:
    if not fields.names:
        return None
    restarts = fields.take_integer("maxRestarts")
    return ElasticNodes(
        minimum=fields.take_integer("minNodes", 1),
        maximum=fields.take_integer("maxNodes", 1),
        restarts=None if restarts is None else RestartLimit(restarts, fields.locate("maxRestarts")),
        metrics=fields.take_list("metrics"),
        location=fields.location,
    )


def _read_group_policy(fields: Fields, annotations: dict[str, JSON]) -> tuple[Mapping[str, JSON], Location]:
    """Return spec.queue of gang scheduling."""
    coscheduling = fields.take_fields("coscheduling")
    coscheduling.ignore("scheduleTimeoutSeconds", "the scheduler's own time limit applies to muster's PodGroup")
    volcano = fields.take_fields("volcano")
    volcano.refuse("networkTopology", "remove it, and set nodePool.sameLabels in the imported job")
    queue_name = annotations.pop("scheduling.volcano.sh/queue-name", "default")
    if fields.has("volcano"):
        return {"volcano": queue_name}, volcano.location
    return ({"coscheduling": {}} if fields.has("coscheduling") else {}), coscheduling.location

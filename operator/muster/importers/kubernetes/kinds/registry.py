"""The kinds that `muster import` converts, by API group and kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.kinds.batch_job import import_batch_job
from muster.importers.kubernetes.kinds.job_set import import_job_set
from muster.importers.kubernetes.kinds.mpi_job import import_mpi_job
from muster.importers.kubernetes.kinds.pytorch_job import import_pytorch_job
from muster.importers.kubernetes.kinds.train_job import import_train_job
from muster.importers.kubernetes.kinds.volcano_job import import_volcano_job


@dataclass(frozen=True)
class Importer:
    """The importer of a kind: its versions, its plural in the API, and the function that returns the job."""

    versions: tuple[str, ...]
    plural: str
    convert: Callable[[Fields, Context], Draft | None]


IMPORTERS: Mapping[tuple[str, str], Importer] = MappingProxyType(
    {
        ("kubeflow.org", "PyTorchJob"): Importer(("v1",), "pytorchjobs", import_pytorch_job),
        ("kubeflow.org", "MPIJob"): Importer(("v1", "v2beta1"), "mpijobs", import_mpi_job),
        ("trainer.kubeflow.org", "TrainJob"): Importer(("v1alpha1",), "trainjobs", import_train_job),
        ("jobset.x-k8s.io", "JobSet"): Importer(("v1alpha2", "v1"), "jobsets", import_job_set),
        ("batch.volcano.sh", "Job"): Importer(("v1alpha1",), "jobs", import_volcano_job),
        ("batch", "Job"): Importer(("v1",), "jobs", import_batch_job),
    }
)

RUNTIME_GROUP = "trainer.kubeflow.org"
RUNTIME_PLURALS: Mapping[str, str] = MappingProxyType(
    {"TrainingRuntime": "trainingruntimes", "ClusterTrainingRuntime": "clustertrainingruntimes"}
)

TRAINING_GROUPS = ("kubeflow.org", "trainer.kubeflow.org", "jobset.x-k8s.io", "batch.volcano.sh", "batch", "ray.io")
"""Groups whose other kinds are a problem, because they may be trainings: TFJob, CronJob, RayJob."""


def list_kinds() -> str:
    """Return the names of all kinds for messages."""
    names = [f"{kind} ({group}/{' and '.join(each.versions)})" for (group, kind), each in IMPORTERS.items()]
    return ", ".join(names)

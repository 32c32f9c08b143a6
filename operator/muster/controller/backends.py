"""The registry of backends: by the name that `spec.backend` gives, what makes one, and what it says of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from muster.api.backends import BackendName
from muster.api.config import tenancy
from muster.api.config.operator import OperatorConfig
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import ClusterBackend
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.pod_index import PodIndex
from muster.backends.node_jobs import NodeJobs
from muster.clients.aws.client import Aws
from muster.clients.kubernetes.client import Client
from muster.collector.store import RankStore
from muster.controller.jobs.training_parts import training_jobs
from muster.render.kubernetes import apply_defaults as on_kubernetes
from muster.render.kubernetes.setting import Setting
from muster.render.sagemaker import apply_defaults as on_sagemaker
from muster.render.sagemaker.notes import training_notes


@dataclass(frozen=True)
class OperatorServices:
    """What the operator has for its backends, for as long as the process lives, whether it leads or not.

    `authority` gives the certificates that agents shall trust, as PEM, `seed` what the gangs' credentials are derived
    from; `clock` gives Unix seconds.
    """

    client: Client
    config: OperatorConfig
    pods: PodIndex
    store: RankStore
    setting: Setting
    authority: Callable[[], str]
    seed: Callable[[], bytes]
    aws: Aws
    clock: Callable[[], float]


@dataclass(frozen=True)
class Term:
    """One time as leader. `wake` is called with a job's uid when a backend learns something of it."""

    number: int
    wake: Callable[[str], None]


@dataclass(frozen=True)
class BackendKind:
    """`apply_defaults` completes a spec and raises `InvalidResource` where that can't be done.

    `notes` are what people should know of a valid job. `make` gives a backend that knows nothing of earlier terms.
    """

    apply_defaults: Callable[[Job, Status, OperatorConfig], Job]
    notes: Callable[[Job], tuple[str, ...]]
    make: Callable[[OperatorServices, Term], ClusterBackend]


def admit(job: Job, config: OperatorConfig) -> None:
    """Raises `InvalidResource` for a job that uses what its namespace may not."""
    tenancy.check(job, config.tenancy, config.sagemaker.region or "")


def _kubernetes(services: OperatorServices, term: Term) -> ClusterBackend:
    nodes = KubernetesBackend(
        services.client,
        services.pods,
        services.store,
        services.setting,
        services.authority,
        services.seed,
        services.clock,
    )
    return NodeJobs(nodes, term.number)


def _sagemaker(services: OperatorServices, term: Term) -> ClusterBackend:
    config = services.config
    return training_jobs(
        services.aws, services.client, config, partial(admit, config=config), services.clock, term.wake
    )


BACKENDS: Mapping[BackendName, BackendKind] = MappingProxyType(
    {
        "Kubernetes": BackendKind(
            lambda job, status, config: on_kubernetes.apply_defaults(job, status, config.node_pools),
            lambda _: (),
            _kubernetes,
        ),
        "SageMaker": BackendKind(
            lambda job, _, config: on_sagemaker.apply_defaults(job, config.sagemaker.region or ""),
            training_notes,
            _sagemaker,
        ),
    }
)
"""All of them: a new backend is one entry here, one in `api/backends.py` and one in `cli/backends.py`."""


def apply_defaults(job: Job, status: Status, config: OperatorConfig) -> Job:
    """The job as its backend's plan takes it. Raises `InvalidResource`."""
    return BACKENDS[job.spec.backend].apply_defaults(job, status, config)


def notes_of(job: Job) -> tuple[str, ...]:
    """What people should know of the job, a line each."""
    return BACKENDS[job.spec.backend].notes(job)


def make_backends(services: OperatorServices, term: Term) -> Mapping[BackendName, ClusterBackend]:
    """All backends of one time as leader."""
    return {name: kind.make(services, term) for name, kind in BACKENDS.items()}

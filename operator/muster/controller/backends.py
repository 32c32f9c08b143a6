"""The registry of backends: it creates backends, applies their defaults, and collects their warnings."""

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
from muster.backends.kubernetes.kube_node_taints import KubeNodeTaints
from muster.backends.kubernetes.pod_index import PodIndex
from muster.backends.node_jobs import NodeJobs
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.jobs import SageMakerJobs
from muster.backends.sagemaker.log_follower import LogFollower
from muster.backends.sagemaker.requests import RequestPreparer
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import JobLogs
from muster.clients.kubernetes.client import Client
from muster.collector.store import RankStore
from muster.controller.sources.config_map_source import ConfigMapSource
from muster.controller.sources.git_token_source import GitTokenSource
from muster.render.kubernetes import apply_defaults as kubernetes_defaults
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.sagemaker import apply_defaults as sagemaker_defaults
from muster.render.sagemaker.job_warnings import make_training_warnings
from muster.storage.git.address_policy import AddressPolicy


@dataclass(frozen=True)
class OperatorServices:
    """The services of the operator's process, which its backends use.

    `get_ca_bundle` returns the CA certificates for agents, as PEM. `seed` returns the secret from which the agents'
    credentials are derived. `clock` returns Unix seconds.
    """

    client: Client
    config: OperatorConfig
    pods: PodIndex
    store: RankStore
    pod_settings: PodSettings
    get_ca_bundle: Callable[[], str]
    seed: Callable[[], bytes]
    aws: Aws
    clock: Callable[[], float]
    taints: KubeNodeTaints


@dataclass(frozen=True)
class LeaderTerm:
    """A period in which this process leads. Backends call `wake` with a job's uid when the job's state changes."""

    number: int
    wake: Callable[[str], None]


@dataclass(frozen=True)
class BackendKind:
    """The functions of a backend.

    `apply_defaults` completes a spec, and raises `InvalidResource` if it can't. `make_warnings` returns warnings about
    a valid job. `make_backend` creates a backend without any state of earlier terms.
    """

    apply_defaults: Callable[[Job, Status, OperatorConfig], Job]
    make_warnings: Callable[[Job], tuple[str, ...]]
    make_backend: Callable[[OperatorServices, LeaderTerm], ClusterBackend]


def admit(job: Job, config: OperatorConfig) -> None:
    """Raise `InvalidResource` if the job's namespace may not use what the job requests."""
    tenancy.check_tenancy(job, config.tenancy, config.sagemaker.region or "")


def _make_kubernetes_jobs(services: OperatorServices, term: LeaderTerm) -> ClusterBackend:
    nodes = KubernetesBackend(
        services.client,
        services.pods,
        services.store,
        services.pod_settings,
        services.get_ca_bundle,
        services.seed,
        services.clock,
        services.taints,
    )
    return NodeJobs(nodes, term.number)


def make_sagemaker_jobs(  # noqa: PLR0917 - the dependencies of a leader
    aws: Aws,
    client: Client,
    config: OperatorConfig,
    admit: Callable[[Job], None],
    clock: Callable[[], float],
    wake: Callable[[str], None],
) -> SageMakerJobs:
    """Create a SageMaker backend without jobs. It calls `wake` with a job's uid when the job's state changes."""

    def choose_address_policy(namespace: str, url: str) -> AddressPolicy:
        return (
            AddressPolicy.NAMED if tenancy.is_git_host_listed(namespace, url, config.tenancy) else AddressPolicy.PUBLIC
        )

    requests = RequestPreparer(aws, ConfigMapSource(client), GitTokenSource(client), choose_address_policy)
    reports = LogFollower(lambda place: JobLogs(partial(aws.send_request, place, "logs")))
    backend = SageMakerBackend(aws, requests, reports, clock, wake)
    return SageMakerJobs(backend, config.sagemaker.region or "", admit, clock)


def _make_sagemaker_jobs(services: OperatorServices, term: LeaderTerm) -> ClusterBackend:
    config = services.config
    return make_sagemaker_jobs(
        services.aws, services.client, config, partial(admit, config=config), services.clock, term.wake
    )


BACKENDS: Mapping[BackendName, BackendKind] = MappingProxyType(
    {
        "Kubernetes": BackendKind(
            lambda job, status, config: kubernetes_defaults.apply_defaults(job, status, config.node_pools),
            lambda _: (),
            _make_kubernetes_jobs,
        ),
        "SageMaker": BackendKind(
            lambda job, _, config: sagemaker_defaults.apply_defaults(job, config.sagemaker.region or ""),
            make_training_warnings,
            _make_sagemaker_jobs,
        ),
    }
)
"""All backends. A new backend needs one entry here, one in `api/backends.py` and one in `cli/backends.py`."""


def apply_defaults(job: Job, status: Status, config: OperatorConfig) -> Job:
    """Complete the job's spec for its backend. Raises `InvalidResource`."""
    return BACKENDS[job.spec.backend].apply_defaults(job, status, config)


def check_job(job: Job, status: Status, config: OperatorConfig) -> None:
    """Raise `InvalidResource` if the namespace may not use what the job requests, or a node pool doesn't exist."""
    # A started job continues, even if the configuration allows less now.
    if not status.was_ever_started:
        admit(job, config)
    apply_defaults(job, status, config)


def get_warnings(job: Job) -> tuple[str, ...]:
    """Return the warnings about a valid job, one line each."""
    return BACKENDS[job.spec.backend].make_warnings(job)


def make_backends(services: OperatorServices, term: LeaderTerm) -> Mapping[BackendName, ClusterBackend]:
    """Create all backends for one term as leader."""
    return {name: kind.make_backend(services, term) for name, kind in BACKENDS.items()}

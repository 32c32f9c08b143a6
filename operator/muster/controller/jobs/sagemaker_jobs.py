"""Create the SageMaker backend of a leader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from muster.api.config.operator import OperatorConfig
from muster.api.config.tenancy import is_git_host_listed
from muster.api.spec.job import Job
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.jobs import SageMakerJobs
from muster.backends.sagemaker.log_follower import LogFollower
from muster.backends.sagemaker.requests import RequestPreparer
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import JobLogs
from muster.clients.kubernetes.client import Client
from muster.controller.sources.config_map_source import ConfigMapSource
from muster.controller.sources.git_token_source import GitTokenSource
from muster.storage.git.address_policy import AddressPolicy


def make_sagemaker_jobs(  # noqa: PLR0917 - the dependencies of a leader
    aws: Aws,
    client: Client,
    config: OperatorConfig,
    admit: Callable[[Job], None],
    clock: Callable[[], float],
    wake: Callable[[str], None],
) -> SageMakerJobs:
    """Create a backend without jobs. It calls `wake` with a job's uid when the job's state changes."""

    def choose_address_policy(namespace: str, url: str) -> AddressPolicy:
        return AddressPolicy.NAMED if is_git_host_listed(namespace, url, config.tenancy) else AddressPolicy.PUBLIC

    requests = RequestPreparer(aws, ConfigMapSource(client), GitTokenSource(client), choose_address_policy)
    reports = LogFollower(lambda place: JobLogs(partial(aws.send_request, place, "logs")))
    backend = SageMakerBackend(aws, requests, reports, clock, wake)
    return SageMakerJobs(backend, config.sagemaker.region or "", admit, clock)

"""What has a leader's SageMaker jobs, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from muster.api.config.operator import OperatorConfig
from muster.api.config.tenancy import names_git_host
from muster.api.spec.job import Job
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.jobs import SageMakerJobs
from muster.backends.sagemaker.log_follower import LogFollower
from muster.backends.sagemaker.requests import PreparedRequests
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import JobLogs
from muster.clients.kubernetes.client import Client
from muster.controller.sources.config_map_source import ConfigMapSource
from muster.controller.sources.git_token_source import GitTokenSource
from muster.storage.git.reach import Reach


def training_jobs(  # noqa: PLR0917 - what a leader has
    aws: Aws,
    client: Client,
    config: OperatorConfig,
    admit: Callable[[Job], None],
    clock: Callable[[], float],
    wake: Callable[[str], None],
) -> SageMakerJobs:
    """They know of no job yet; `wake` is called with a job's uid when something of it changed."""

    def reach(namespace: str, url: str) -> Reach:
        return Reach.NAMED if names_git_host(namespace, url, config.tenancy) else Reach.PUBLIC

    requests = PreparedRequests(aws, ConfigMapSource(client), GitTokenSource(client), reach)
    news = LogFollower(lambda place: JobLogs(partial(aws.ask, place, "logs")))
    backend = SageMakerBackend(aws, requests, news, clock, wake)
    return SageMakerJobs(backend, config.sagemaker.region or "", admit, clock)

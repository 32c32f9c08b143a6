"""What has a leader's SageMaker jobs, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from muster.aws.client import Aws
from muster.aws.job_logs import JobLogs
from muster.backends.sagemaker.backend import SageMakerBackend
from muster.backends.sagemaker.log_follower import LogFollower
from muster.backends.sagemaker.requests import PreparedRequests
from muster.kube.client import Client
from muster.runtime.cluster.config_map_source import ConfigMapSource
from muster.runtime.cluster.training_life import TrainingLife


def training_life(
    aws: Aws, client: Client, default_region: str, clock: Callable[[], float], wake: Callable[[str], None]
) -> TrainingLife:
    """A life that knows of no job yet; `wake` is called with a job's uid when something of it changed."""
    requests = PreparedRequests(aws, ConfigMapSource(client))
    news = LogFollower(lambda place: JobLogs(partial(aws.ask, place, "logs")))
    return TrainingLife(SageMakerBackend(aws, requests, news, clock, wake), default_region, clock)

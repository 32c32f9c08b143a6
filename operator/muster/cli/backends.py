"""The registry of the backends' functions, by the name in `spec.backend`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muster.api.backends import BackendName
from muster.api.spec.job import Job
from muster.cli.backend_commands import BackendCommands
from muster.cli.render.kubernetes_commands import KUBERNETES
from muster.cli.render.sagemaker_commands import SAGEMAKER

COMMANDS: Mapping[BackendName, BackendCommands] = MappingProxyType({"Kubernetes": KUBERNETES, "SageMaker": SAGEMAKER})


def get_commands(job: Job) -> BackendCommands:
    """Return the functions of the job's backend."""
    return COMMANDS[job.spec.backend]

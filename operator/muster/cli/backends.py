"""The registry of the backends' functions, by the name in `spec.backend`.

Each entry imports its backend when a command needs it, because a command needs the functions of one backend only.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from muster.api.backends import BackendName
from muster.api.spec.job import Job
from muster.cli.backend_commands import BackendCommands


def _import_kubernetes() -> BackendCommands:
    from muster.cli.render.kubernetes_commands import KUBERNETES_COMMANDS

    return KUBERNETES_COMMANDS


def _import_sagemaker() -> BackendCommands:
    from muster.cli.render.sagemaker_commands import SAGEMAKER_COMMANDS

    return SAGEMAKER_COMMANDS


COMMANDS: Mapping[BackendName, Callable[[], BackendCommands]] = MappingProxyType(
    {"Kubernetes": _import_kubernetes, "SageMaker": _import_sagemaker}
)


def get_commands(job: Job) -> BackendCommands:
    """Return the functions of the job's backend."""
    return COMMANDS[job.spec.backend]()

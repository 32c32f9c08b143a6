"""The backends that `spec.backend` accepts, and the properties in which they differ.

`controller/backends.py` has their implementations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

BackendName = Literal["Kubernetes", "SageMaker"]
"""The values of `spec.backend`."""


@dataclass(frozen=True)
class BackendTraits:
    """Properties of all jobs of a backend.

    `has_collector`: the agents on the job's nodes report to muster's collector without delay. Without a collector,
    reports arrive late or never. `finalizer` delays the resource's deletion until muster has stopped the job. It is
    None if Kubernetes deletes the job's objects itself.
    """

    has_collector: bool
    finalizer: str | None = None


TRAINING_JOB_FINALIZER = "muster.dev/training-job"
"""Delays the resource's deletion until muster has stopped its training job, which Kubernetes can't stop itself."""

BACKENDS: Mapping[BackendName, BackendTraits] = MappingProxyType(
    {
        "Kubernetes": BackendTraits(has_collector=True),
        "SageMaker": BackendTraits(has_collector=False, finalizer=TRAINING_JOB_FINALIZER),
    }
)
"""The properties of each backend."""


def list_backends_with_collector() -> tuple[BackendName, ...]:
    """Return the backends whose agents report to muster's collector."""
    return tuple(name for name, traits in BACKENDS.items() if traits.has_collector)


def find_finalizing_backend(finalizers: tuple[str, ...]) -> BackendName | None:
    """Return the backend that set one of these finalizers; None if no backend did."""
    return next((name for name, traits in BACKENDS.items() if traits.finalizer in finalizers), None)

"""The backends that a resource may name, and what the rest of muster asks of each: facts in place of comparisons.

What makes one is in the operator's registry (`controller/backends.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

BackendName = Literal["Kubernetes", "SageMaker"]
"""The values of `spec.backend`."""


@dataclass(frozen=True)
class BackendTraits:
    """What is true of all jobs of a backend.

    `has_collector`: its nodes run agents, which report to muster's collector at once and at its pace; otherwise what
    ranks say arrives late, and from many jobs never. `has_restarts`: `failurePolicy` is heeded. `finalizer` is what
    holds a resource whose deletion ends nothing by itself; None: Kubernetes deletes all that belongs to it.
    """

    has_collector: bool
    has_restarts: bool
    finalizer: str | None = None


TRAINING_JOB_FINALIZER = "muster.dev/training-job"
"""On a resource whose training job may run: nothing in the cluster goes with it, so muster has to see to that."""

BACKENDS: Mapping[BackendName, BackendTraits] = MappingProxyType(
    {
        "Kubernetes": BackendTraits(has_collector=True, has_restarts=False),
        "SageMaker": BackendTraits(has_collector=False, has_restarts=True, finalizer=TRAINING_JOB_FINALIZER),
    }
)
"""All of them, by the name that a resource gives."""


def with_restarts() -> tuple[BackendName, ...]:
    """The backends that start a failed job again."""
    return tuple(name for name, traits in BACKENDS.items() if traits.has_restarts)


def holder_of(finalizers: tuple[str, ...]) -> BackendName | None:
    """The backend that holds a resource with these finalizers; None: muster doesn't hold it."""
    return next((name for name, traits in BACKENDS.items() if traits.finalizer in finalizers), None)

"""The interface of a backend: everything that `engine/reconcile.py` and the operator need from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.judge import Outcome

Observed = TypeVar("Observed")
"""What a backend's `observe` returns."""

Facts = TypeVar("Facts")
"""The completed observation, which the plan judges."""

Act = TypeVar("Act")
"""The actions of a backend."""


REQUEUE_SECONDS = 1.0
"""The delay after an action: the next observation shows its effect and the next deadline."""


@dataclass(frozen=True)
class Observation(Generic[Facts]):
    """A job at one moment: its spec, its last status, the facts, and the time (Unix seconds)."""

    job: Job
    previous: Status
    facts: Facts
    now: float


class Plan(Protocol[Observed, Facts, Act]):
    """The decisions about a backend's jobs. Pure: the same observation always gives the same result."""

    def complete(self, observed: Observation[Observed]) -> Observation[Facts]:
        """Derive the complete facts, in one ordered list of steps."""
        ...

    def judge(self, observation: Observation[Facts]) -> Outcome:
        """Return whether the job is over, and how it ended."""
        ...

    def decide(self, observation: Observation[Facts], outcome: Outcome) -> tuple[Act, ...]:
        """Return the actions that are needed now."""
        ...

    def summarise(self, observation: Observation[Facts], outcome: Outcome, actions: Sequence[Act]) -> Status:
        """Return the new status of the resource."""
        ...

    def next_requeue_at(self, observation: Observation[Facts], outcome: Outcome) -> float | None:
        """Return when time alone may change the decision or the status (Unix seconds); None: never."""
        ...

    def is_over(self, observation: Observation[Facts], outcome: Outcome, actions: Sequence[Act]) -> bool:
        """Whether the outcome is decided, and the job needs no more reconciles."""
        ...


class Backend(Protocol[Observed, Facts, Act]):
    """The system that runs a job's nodes."""

    @property
    def plan(self) -> Plan[Observed, Facts, Act]:
        """The plan of this backend."""
        ...

    async def observe(self, job: Job, previous: Status) -> Observed:
        """Observe the job; `previous` is its last status."""
        ...

    async def apply(self, job: Job, actions: Sequence[Act]) -> None:
        """Execute the actions. Idempotent."""
        ...


AnyBackend: TypeAlias = Backend[Any, Any, Any]
"""A backend of the registry: `reconcile` doesn't depend on its facts or actions."""


@dataclass(frozen=True)
class Requeue:
    """When to reconcile again without an event (Unix seconds; None: never), or that the job is over."""

    until: float | None
    is_over: bool


class JobResource(Protocol):
    """A decoded version of the job's resource. Times are Unix seconds."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def created_at(self) -> float: ...
    @property
    def deleted_at(self) -> float | None: ...
    @property
    def has_finalizer(self) -> bool:
        """Whether the resource has a backend's finalizer."""
        ...

    @property
    def job(self) -> Job | InvalidResource:
        """The decoded spec, or its problems."""
        ...

    @property
    def status(self) -> Status: ...


class ResourceWriter(Protocol):
    """The changes of a job's resource that a backend may make. Each method raises its request's errors."""

    async def write(self, status: Status) -> None:
        """Write the status."""
        ...

    async def add_finalizer(self, finalizer: str) -> None:
        """Add this finalizer."""
        ...

    async def remove_finalizer(self, finalizer: str) -> None:
        """Remove this finalizer, and no other."""
        ...

    async def delete(self) -> None:
        """Delete the resource."""
        ...

    def notify_when_outdated(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `callback` when the resource is deleted, or its spec changes during this reconcile."""
        ...


class ClusterBackend(Protocol):
    """All jobs of a backend, during one term as leader."""

    def for_job(self, resource: JobResource, writer: ResourceWriter) -> AnyBackend:
        """Return the backend of one job, for one reconcile."""
        ...

    async def finalize(self, resource: JobResource, writer: ResourceWriter) -> Requeue:
        """Clean up for a deleted resource that still has the backend's finalizer."""
        ...

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        ...

    def close(self) -> None:
        """Stop: this process' term as leader ends."""
        ...

"""The interface of a backend: everything that `engine/reconcile.py` and the operator need from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.outcome import Outcome

ObservedT = TypeVar("ObservedT")
"""What a backend's `observe` returns."""

FactsT = TypeVar("FactsT")
"""The facts that a backend derives from its observation and judges."""

ActionT = TypeVar("ActionT")
"""The actions of a backend."""


REQUEUE_SECONDS = 1.0
"""After an action, reconcile again after this delay, to observe its effect."""


@dataclass(frozen=True)
class Observation(Generic[FactsT]):
    """A job at one moment: its spec, its last status, the facts, and the time (Unix seconds)."""

    job: Job
    previous: Status
    facts: FactsT
    now: float


class Decisions(Protocol[ObservedT, FactsT, ActionT]):
    """The decisions about a backend's jobs. Pure: the same observation always gives the same result."""

    def derive_facts(self, observation: Observation[ObservedT]) -> Observation[FactsT]:
        """Derive the facts from the observation, in one ordered list of steps."""
        ...

    def judge(self, observation: Observation[FactsT]) -> Outcome:
        """Return whether the job is over, and how it ended."""
        ...

    def decide(self, observation: Observation[FactsT], outcome: Outcome) -> tuple[ActionT, ...]:
        """Return the actions that are needed now."""
        ...

    def summarise(self, observation: Observation[FactsT], outcome: Outcome, actions: Sequence[ActionT]) -> Status:
        """Return the new status of the resource."""
        ...

    def find_requeue_time(self, observation: Observation[FactsT], outcome: Outcome) -> float | None:
        """Return when to reconcile again without an event (Unix seconds); None: never."""
        ...

    def is_over(self, observation: Observation[FactsT], outcome: Outcome, actions: Sequence[ActionT]) -> bool:
        """Whether the job needs no more reconciles."""
        ...


class Backend(Protocol[ObservedT, FactsT, ActionT]):
    """The system that runs a job's nodes."""

    @property
    def decisions(self) -> Decisions[ObservedT, FactsT, ActionT]:
        """How this backend decides."""
        ...

    async def observe(self, job: Job, previous: Status) -> ObservedT:
        """Observe the job; `previous` is its last status."""
        ...

    async def apply(self, job: Job, actions: Sequence[ActionT]) -> None:
        """Execute the actions. Idempotent."""
        ...


AnyBackend: TypeAlias = Backend[Any, Any, Any]
"""A backend of the registry: `reconcile` doesn't depend on its facts or actions."""


@dataclass(frozen=True)
class Requeue:
    """The time of the next reconcile without an event (Unix seconds; None: never), and whether the job is over."""

    at: float | None
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
    def restart_request(self) -> str | None:
        """The value of the annotation that requests a restart; None without it."""
        ...

    @property
    def source_name(self) -> str | None:
        """The ConfigMap that the annotation of edited code names; None without it."""
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
        """In the `with` block, call `callback` when the resource is deleted or its spec changes."""
        ...


class ClusterBackend(Protocol):
    """A backend of the operator: it runs the jobs of all users while this replica is the leader."""

    def for_job(self, resource: JobResource, writer: ResourceWriter) -> AnyBackend:
        """Return a backend for one job and one reconcile."""
        ...

    async def finalize(self, resource: JobResource, writer: ResourceWriter) -> Requeue:
        """Clean up for a deleted resource that still has the backend's finalizer."""
        ...

    def forget(self, job_uid: str) -> None:
        """Drop the state of a job whose resource was deleted."""
        ...

    def close(self) -> None:
        """Stop all work: this replica is no longer the leader."""
        ...

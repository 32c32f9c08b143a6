"""What a backend is: all that `engine/reconcile.py` and the operator ask of the places where jobs run."""

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
"""What a backend's `observe` gathers."""

Facts = TypeVar("Facts")
"""The same once it is complete: what is judged."""

Act = TypeVar("Act")
"""What a decision may ask of a backend."""


LOOK_AGAIN_SECONDS = 1.0
"""After something was done: what follows from it, and by when, shows in the facts of the next look only."""


@dataclass(frozen=True)
class Observation(Generic[Facts]):
    """A job at one moment: its spec, its last status, what is known of it, and the time (Unix seconds)."""

    job: Job
    previous: Status
    facts: Facts
    now: float


class Plan(Protocol[Observed, Facts, Act]):
    """What follows from the facts of a backend's jobs. Pure: the same observation always gives the same."""

    def complete(self, observed: Observation[Observed]) -> Observation[Facts]:
        """The observation with all that follows from it, in one ordered list of steps."""
        ...

    def judge(self, known: Observation[Facts]) -> Outcome:
        """Whether the job is over, and how it ended."""
        ...

    def decide(self, known: Observation[Facts], outcome: Outcome) -> tuple[Act, ...]:
        """What has to be done now; nothing when all is as it should be."""
        ...

    def summarise(self, known: Observation[Facts], outcome: Outcome, actions: Sequence[Act]) -> Status:
        """The status that a reader of the resource sees."""
        ...

    def next_wake(self, known: Observation[Facts], outcome: Outcome) -> float | None:
        """When time alone may change the decision or the status (Unix seconds); None: never."""
        ...

    def is_over(self, known: Observation[Facts], outcome: Outcome, actions: Sequence[Act]) -> bool:
        """Whether the outcome is known, and nothing of the job is left to look after."""
        ...


class Backend(Protocol[Observed, Facts, Act]):
    """Where a job runs."""

    @property
    def plan(self) -> Plan[Observed, Facts, Act]:
        """What follows from the facts."""
        ...

    async def observe(self, job: Job, previous: Status) -> Observed:
        """What is known of the job now; `previous` is its last status."""
        ...

    async def apply(self, job: Job, actions: Sequence[Act]) -> None:
        """Do what was decided. Doing it again changes nothing."""
        ...


AnyBackend: TypeAlias = Backend[Any, Any, Any]
"""One of a registry's: which facts and actions it has is its own affair, and `reconcile` looks into neither."""


@dataclass(frozen=True)
class Requeue:
    """When there is more although nothing happens (Unix seconds; None: never), or nothing at all."""

    until: float | None
    is_over: bool


class JobResource(Protocol):
    """A version of the job's resource, read. Times are Unix seconds."""

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
    def is_held(self) -> bool:
        """Whether a backend's finalizer keeps it from being deleted."""
        ...

    @property
    def job(self) -> Job | InvalidResource:
        """What its spec says, or what is wrong with it."""
        ...

    @property
    def status(self) -> Status: ...


class ResourceWriter(Protocol):
    """What a backend may change of the job's resource. Each raises what stands in its way."""

    async def write(self, status: Status) -> None:
        """Keep the status."""
        ...

    async def hold(self, finalizer: str) -> None:
        """Put this finalizer on it."""
        ...

    async def release(self, finalizer: str) -> None:
        """Remove this finalizer and no other."""
        ...

    async def delete(self) -> None:
        """Delete it."""
        ...

    def told_when_outdated(self, tell: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `tell` called when it is deleted, or its spec is no longer the one of this turn."""
        ...


class ClusterBackend(Protocol):
    """All jobs of a backend, for as long as this operator leads."""

    def of(self, resource: JobResource, writer: ResourceWriter) -> AnyBackend:
        """The backend of one job, for one time around."""
        ...

    async def leave(self, resource: JobResource, writer: ResourceWriter) -> Requeue:
        """Bring a deleted resource that bears the backend's finalizer closer to its end."""
        ...

    def forget(self, job_uid: str) -> None:
        """Drop what is held for a job whose resource was deleted."""
        ...

    def close(self) -> None:
        """Another operator leads, or will."""
        ...

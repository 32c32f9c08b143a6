"""Where a job's status is kept on a cluster: in its resource, written only over the version that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.status.reader import status_of
from muster.api.status.status import Status
from muster.api.yaml.serialise import status_fields
from muster.clients.kubernetes.client import Client
from muster.controller.jobs.job_room import JobRoom
from muster.controller.status.merge_patch import diff
from muster.controller.status.write_budget import WriteBudget
from muster.core.status.news import is_news
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import WATCHED_JOBS, identity_of
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource, read_resource

PROGRESS_SECONDS = 2.0
"""The least time between two writes of mere progress of one job."""


class Superseded(Exception):
    """The resource has changed since the turn began: the turn is done again, on the newest version."""


class NotLeading(Exception):
    """The Lease isn't held at this moment: what the turn decided is another operator's to do."""


class JobGone(Exception):
    """There is no such resource any more; at most another one of its name."""


@dataclass(frozen=True)
class StatusWriterDependencies:
    """What all status writers share. `clock` gives Unix seconds; `publish` hears what was written: before, after.

    `holds_lease` says whether this process may act as leader at this moment. `room` is what all jobs have to find room
    in, from wherever they are heard of.
    """

    client: Client
    budget: WriteBudget
    clock: Callable[[], float]
    publish: Callable[[Resource, Status, Status], None]
    holds_lease: Callable[[], bool]
    room: JobRoom = field(default_factory=JobRoom)

    def read(self, source: Object, previous: Resource | None = None) -> Resource:
        """As `read_resource`; of a spec that is refused nothing counts as held any more."""
        resource = read_resource(source, previous)
        if isinstance(resource.job, InvalidResource):
            self.room.is_refused(identity_of(source), resource.job)
        return resource


class StatusWriter:
    """One job's. `newest` is the newest version of its resource that is known, `due_at` when progress may be written.

    `due_at` is None when nothing waits to be written.
    """

    def __init__(self, resource: Resource, dependencies: StatusWriterDependencies) -> None:
        self.newest = resource
        self.due_at: float | None = None
        self._dependencies = dependencies
        self._base = resource
        self._progress_at = float("-inf")
        self._turn_at: float | None = None
        self._answered: tuple[Resource, dict[str, JSON]] | None = None
        self._untold: Resource | None = None
        self._outdated: Callable[[], None] | None = None

    def take(self, source: Object) -> bool:
        """Hear of a version of the resource; whether it is a newer one."""
        resource = self._dependencies.read(source, self.newest)
        if not resource.is_newer_than(self.newest):
            return False
        self.newest = resource
        self._tell_if_outdated()
        return True

    @contextmanager
    def told_when_outdated(self, tell: Callable[[], None]) -> Iterator[None]:
        """Have `tell` called when the resource is deleted, or its spec is no longer the one of this turn."""
        self._outdated = tell
        self._tell_if_outdated()
        try:
            yield
        finally:
            self._outdated = None

    def begin(self) -> Resource:
        """Begin a turn; the version of the resource that it is made from."""
        self._base = self.newest
        self._tell_what_was_written()
        return self._base

    async def write(self, status: Status) -> None:
        """Keep the turn's status: news now, progress when it is due. Afterwards the turn may act.

        Raises `Superseded`, `JobGone`, `NotLeading`, and `ApiError` when the API server does not take it.
        """
        await self._keep(status, status_fields(status))
        # Also when nothing was to be written: the process may have been stopped since the turn began.
        if not self._dependencies.holds_lease():
            raise NotLeading

    async def annotate(self, fields: dict[str, JSON]) -> None:
        """Keep a status that can't be read as a whole, as these fields. Raises what `write` raises."""
        await self._keep(status_of({"status": fields}), fields)

    async def hold(self, finalizer: str) -> None:
        """Put a backend's finalizer on the resource. Raises what `write` raises."""
        await self._merge({"finalizers": [*self.newest.finalizers, finalizer]})

    async def release(self, finalizer: str) -> None:
        """Remove this finalizer and no other. Raises what `write` raises."""
        kept: list[JSON] = [name for name in self.newest.finalizers if name != finalizer]
        await self._merge({"finalizers": kept})

    async def delete(self) -> None:
        """Delete the resource. Raises `ApiError`."""
        base = self._base
        await self._dependencies.client.delete(WATCHED_JOBS, base.namespace, base.name, uid=base.uid)

    async def _keep(self, status: Status, wanted: dict[str, JSON]) -> None:
        base = self._base
        if self.newest is not base:
            raise Superseded
        patch = diff(base.status_fields, wanted)
        # An older CRD keeps less than it is sent: to send it again changes nothing.
        if not patch or self._answered == (base, wanted):
            self.due_at = self._turn_at = None
            return
        if is_news(base.status, status):
            self._dependencies.budget.spend(self._dependencies.clock(), base.namespace)
        elif not self._is_due():
            return
        self.due_at = self._turn_at = None
        # Without an answer it is unknown whether the status was written.
        self._untold = base
        await self._send(patch)
        self._untold = None
        self._answered = (self.newest, wanted)
        self._progress_at = self._dependencies.clock()
        self._dependencies.publish(base, base.status, status)

    def _tell_what_was_written(self) -> None:
        """Tell of a write whose answer was lost: what follows its version shows whether it was carried out."""
        before, after = self._untold, self._base
        if before is None or after is before:
            return
        self._untold = None
        if after.status != before.status:
            self._dependencies.publish(before, before.status, after.status)

    def _tell_if_outdated(self) -> None:
        is_outdated = self.newest.generation != self._base.generation or self.newest.is_leaving
        if self._outdated is not None and is_outdated:
            self._outdated()

    def _is_due(self) -> bool:
        """Whether progress may be written now; else `due_at` says when."""
        now = self._dependencies.clock()
        if self._turn_at is None:
            # A turn that is asked for too early is used late, together with those of others.
            self.due_at = self._progress_at + PROGRESS_SECONDS
            if now < self.due_at:
                return False
            self._turn_at = self._dependencies.budget.reserve(now, self._base.namespace)
        self.due_at = self._turn_at
        return now >= self.due_at

    async def _send(self, patch: dict[str, JSON]) -> None:
        base = self._base
        # Whatever came between, even a resource of the same name made anew, is not written over.
        body: Object = {"metadata": {"resourceVersion": base.version, "uid": base.uid}, "status": patch}
        await self._patch(body, "status")

    async def _merge(self, metadata: dict[str, JSON]) -> None:
        # A merge patch replaces lists, so refuse it if the resource has changed since.
        by_key: dict[str, JSON] = {"resourceVersion": self.newest.version, "uid": self.newest.uid}
        await self._patch({"metadata": {**metadata, **by_key}}, None)

    async def _patch(self, body: Object, subresource: str | None) -> None:
        base = self._base
        try:
            answer = await self._dependencies.client.merge(WATCHED_JOBS, base.namespace, base.name, body, subresource)
        except ApiError as error:
            if error.is_not_found:
                raise JobGone from error
            if error.is_conflict:
                await self._fetch()
                raise Superseded from error
            raise
        self.take(self._dependencies.room.place(answer))

    async def _fetch(self) -> None:
        try:
            source = await self._dependencies.client.get(WATCHED_JOBS, self._base.namespace, self._base.name)
        except ApiError as error:
            if error.is_not_found:
                raise JobGone from error
            raise
        # The answer to the write before may have been lost: then this shows what it wrote.
        if identity_of(source).uid != self._base.uid:
            raise JobGone
        self.take(self._dependencies.room.place(source))

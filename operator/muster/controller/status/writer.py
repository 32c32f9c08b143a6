"""Write a job's status to its resource, unless the resource has changed since the job was observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.status.reader import read_status
from muster.api.status.status import Status
from muster.api.yaml.serialise import serialise_status
from muster.clients.kubernetes.client import Client
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.status.merge_patch import make_merge_patch
from muster.controller.status.write_budget import WriteBudget
from muster.core.shard import FIELD, Shard
from muster.core.status.significant_change import is_significant_change
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import WATCHED_JOBS, read_identity
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource, is_newer, read_resource

PROGRESS_INTERVAL_SECONDS = 2.0
"""The minimum interval between two progress writes of one job."""

SETTLE_SECONDS = 0.5
"""Progress is written this long after its first change: the pods of a job start within moments of each other."""

CROWDED_INTERVAL_SECONDS = 20.0
"""The minimum interval while other requests of the job's namespace wait.

The progress of hundreds of jobs would take all requests that the API server can handle, and delay starts and failures.
"""

CROWDED_RETRY_SECONDS = 1.0
"""When to look again whether requests still wait."""


class ResourceChanged(Exception):
    """The resource has changed since the reconcile started: reconcile again with the newest version."""


class NotLeading(Exception):
    """This process doesn't hold the Lease now, so it must not act."""


class JobNotFound(Exception):
    """The resource no longer exists. Another resource may have the same name."""


@dataclass(frozen=True)
class StatusWriterDependencies:
    """The components that all status writers use. `clock` returns Unix seconds.

    `publish` is called after a write, with the status before and after it. `holds_lease` returns whether this process
    may act as leader now. `is_crowded` returns whether requests of a namespace wait for the API server. `job_memory`
    limits the memory for all jobs. Each status names `shard`.
    """

    client: Client
    budget: WriteBudget
    clock: Callable[[], float]
    publish: Callable[[Resource, Status, Status], None]
    holds_lease: Callable[[], bool]
    is_crowded: Callable[[str], bool] = lambda _: False
    job_memory: JobMemory = field(default_factory=JobMemory)
    shard: Shard = field(default_factory=Shard)

    def read(self, source: Object, previous: Resource | None = None) -> Resource:
        """Call `read_resource`, and release the memory of a refused spec."""
        resource = read_resource(source, previous)
        if isinstance(resource.job, InvalidResource):
            self.job_memory.release_spec(read_identity(source), resource.job)
        return resource


class StatusWriter:
    """The status writer of one job. `newest_resource` is the newest known version of the resource.

    `progress_due_at` is the time at which progress may be written; None if no progress waits. `on_written` is called
    after each write.
    """

    def __init__(
        self, resource: Resource, dependencies: StatusWriterDependencies, on_written: Callable[[], None]
    ) -> None:
        self.newest_resource = resource
        self.progress_due_at: float | None = None
        self._dependencies = dependencies
        self._on_written = on_written
        self._base = resource
        self._progress_at = float("-inf")
        self._unwritten_since: float | None = None
        self._slot_at: float | None = None
        self._last_write: tuple[Resource, dict[str, JSON]] | None = None
        self._unconfirmed_base: Resource | None = None
        self._on_outdated: Callable[[], None] | None = None

    def handle_change(self, source: Object) -> bool:
        """Handle a version of the resource; return whether it is newer."""
        # Each write comes back as an event. Parsing takes a millisecond, and it only matters to a refused spec.
        if not isinstance(self.newest_resource.job, InvalidResource) and not is_newer(source, self.newest_resource):
            return False
        resource = self._dependencies.read(source, self.newest_resource)
        if not resource.is_newer_than(self.newest_resource):
            return False
        self.newest_resource = resource
        self._notify_if_outdated()
        return True

    @contextmanager
    def notify_when_outdated(self, callback: Callable[[], None]) -> Iterator[None]:
        """In the `with` block, call `callback` when the resource is deleted or its spec changes."""
        self._on_outdated = callback
        self._notify_if_outdated()
        try:
            yield
        finally:
            self._on_outdated = None

    def begin_reconcile(self) -> Resource:
        """Start a reconcile, and return the version of the resource that it uses."""
        self._base = self.newest_resource
        self._publish_unconfirmed()
        return self._base

    async def write(self, status: Status) -> None:
        """Write a significant change now, and mere progress when it is due.

        Raises `ResourceChanged`, `JobNotFound`, `NotLeading`, and `ApiError`.
        """
        status = self._add_shard(status)
        await self._write(status, serialise_status(status), is_urgent=self._is_significant(status))
        self._check_lease()

    def plan_progress(self) -> float:
        """Return when progress may be written. Call this again then: the time may be that of the next decision."""
        self._is_due()
        return self._dependencies.clock() if self.progress_due_at is None else self.progress_due_at

    async def write_now(self, status: Status) -> None:
        """Write the status, also progress. The caller may act afterwards. Raises the errors of `write`."""
        status = self._add_shard(status)
        await self._write(status, serialise_status(status), is_urgent=True)
        self._check_lease()

    def _add_shard(self, status: Status) -> Status:
        return status.model_copy(update={"shard": self._dependencies.shard.recorded_index})

    def _check_lease(self) -> None:
        # Even if nothing was written: the process may have been suspended during the reconcile.
        if not self._dependencies.holds_lease():
            raise NotLeading

    async def write_fields(self, fields: dict[str, JSON]) -> None:
        """Write some fields of a status that muster can't read. Raises the errors of `write`."""
        recorded_index = self._dependencies.shard.recorded_index
        if recorded_index is not None:
            fields = {**fields, FIELD: recorded_index}
        status = read_status({"status": fields})
        await self._write(status, fields, is_urgent=self._is_significant(status))

    async def add_finalizer(self, finalizer: str) -> None:
        """Add a backend's finalizer to the resource. Raises the errors of `write`."""
        await self._merge_metadata({"finalizers": [*self.newest_resource.finalizers, finalizer]})

    async def remove_finalizer(self, finalizer: str) -> None:
        """Remove this finalizer. Raises the errors of `write`."""
        finalizers: list[JSON] = [name for name in self.newest_resource.finalizers if name != finalizer]
        await self._merge_metadata({"finalizers": finalizers})

    async def delete(self) -> None:
        """Delete the resource. Raises `ApiError`."""
        base = self._base
        await self._dependencies.client.delete(WATCHED_JOBS, base.namespace, base.name, uid=base.uid)

    def _is_significant(self, status: Status) -> bool:
        return is_significant_change(self._base.status, status)

    async def _write(self, status: Status, new_fields: dict[str, JSON], *, is_urgent: bool) -> None:
        base = self._base
        if self.newest_resource is not base:
            raise ResourceChanged
        patch = make_merge_patch(base.status_fields, new_fields)
        # The API server drops fields that an older CRD lacks: don't write them again.
        if not patch or self._last_write == (base, new_fields):
            self._forget_progress()
            return
        if is_urgent:
            self._dependencies.budget.spend(self._dependencies.clock(), base.namespace)
        elif not self._is_due():
            return
        self._forget_progress()
        # Until there is a response, it is unknown whether the API server wrote the status.
        self._unconfirmed_base = base
        await self._send(patch)
        self._unconfirmed_base = None
        self._last_write = (self.newest_resource, new_fields)
        self._progress_at = self._dependencies.clock()
        self._dependencies.publish(base, base.status, status)
        self._on_written()

    def _publish_unconfirmed(self) -> None:
        """Publish a status whose write got no response, if the next version of the resource contains it."""
        before, after = self._unconfirmed_base, self._base
        if before is None or after is before:
            return
        self._unconfirmed_base = None
        if after.status != before.status:
            self._dependencies.publish(before, before.status, after.status)

    def _notify_if_outdated(self) -> None:
        is_outdated = self.newest_resource.generation != self._base.generation or self.newest_resource.is_terminating
        if self._on_outdated is not None and is_outdated:
            self._on_outdated()

    def _is_due(self) -> bool:
        """Whether progress may be written now; otherwise set `progress_due_at`."""
        now = self._dependencies.clock()
        if self._slot_at is None:
            # Reserve a slot only after the interval, so that the slot is near.
            self.progress_due_at = self._find_progress_time(now)
            if now < self.progress_due_at:
                return False
            self._slot_at = self._dependencies.budget.reserve(now, self._base.namespace)
        self.progress_due_at = self._slot_at
        return now >= self.progress_due_at

    def _find_progress_time(self, now: float) -> float:
        if self._unwritten_since is None:
            self._unwritten_since = now
        due_at = max(self._progress_at + PROGRESS_INTERVAL_SECONDS, self._unwritten_since + SETTLE_SECONDS)
        if now < due_at or not self._dependencies.is_crowded(self._base.namespace):
            return due_at
        return max(due_at, min(now + CROWDED_RETRY_SECONDS, self._progress_at + CROWDED_INTERVAL_SECONDS))

    def _forget_progress(self) -> None:
        self.progress_due_at = self._unwritten_since = self._slot_at = None

    async def _send(self, patch: dict[str, JSON]) -> None:
        base = self._base
        # With the version and the uid, the write fails if the resource has changed or was replaced.
        body: Object = {"metadata": {"resourceVersion": base.version, "uid": base.uid}, "status": patch}
        await self._patch(body, "status")

    async def _merge_metadata(self, metadata: dict[str, JSON]) -> None:
        # A merge patch replaces lists, so it must fail if the resource has changed.
        preconditions: dict[str, JSON] = {
            "resourceVersion": self.newest_resource.version,
            "uid": self.newest_resource.uid,
        }
        await self._patch({"metadata": {**metadata, **preconditions}}, None)

    async def _patch(self, body: Object, subresource: str | None) -> None:
        base = self._base
        try:
            response = await self._dependencies.client.merge(WATCHED_JOBS, base.namespace, base.name, body, subresource)
        except ApiError as error:
            if error.is_not_found:
                raise JobNotFound from error
            if error.is_conflict:
                await self._fetch()
                raise ResourceChanged from error
            raise
        self.handle_change(self._dependencies.job_memory.reserve(response))

    async def _fetch(self) -> None:
        try:
            source = await self._dependencies.client.get(WATCHED_JOBS, self._base.namespace, self._base.name)
        except ApiError as error:
            if error.is_not_found:
                raise JobNotFound from error
            raise
        # If the response to the previous write was lost, this version contains its status.
        if read_identity(source).uid != self._base.uid:
            raise JobNotFound
        self.handle_change(self._dependencies.job_memory.reserve(source))

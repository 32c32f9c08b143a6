"""One job's life in the operator: turn after turn, for as long as there is something to do."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field

from muster.api.backends import BackendName
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.timestamps import from_text
from muster.backends.base import ClusterBackend, Requeue
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.collector.store import RankStore
from muster.controller.jobs.cpu_share import CpuShare
from muster.controller.jobs.cpu_time import Metered
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.jobs.urgency import standing
from muster.controller.status.writer import JobGone, NotLeading, StatusWriter, StatusWriterDependencies, Superseded
from muster.core.reports.check import Shape
from muster.core.status.refused import refused
from muster.core.status.unreadable import unreadable
from muster.core.world import procs_per_node
from muster.engine.reconcile import reconcile
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource

MIN_DELAY_SECONDS = 0.02
"""Reports that come together are looked at together."""

URGENT_SECONDS = 0.5
"""How often a long rest is looked up from: what changes a rank's state is told within a second."""

NOT_LEADING_SECONDS = 0.5
"""Until the next turn after one that was not let act."""

BUG_BACKOFF_FACTOR = 4.0
"""What failed by a mistake in muster rarely gets better by itself: the pauses are so many times as long."""

_log = logging.getLogger(__name__)


class StatusUnclear(Exception):
    """What the job's status says of its past can't be read."""


@dataclass(frozen=True)
class JobControllerDependencies:
    """What all controllers share. `apply_defaults` completes a spec as its backend does.

    `admit` raises `InvalidResource` for a job that uses what its namespace may not.
    `processor` shares the event loop's time among namespaces. `clock` gives Unix seconds, `chance` numbers from 0 to 1.
    """

    backends: Mapping[BackendName, ClusterBackend]
    store: RankStore
    writing: StatusWriterDependencies
    apply_defaults: Callable[[Job, Status], Job]
    admit: Callable[[Job], None]
    clock: Callable[[], float]
    processor: ProcessorQueue
    chance: Callable[[], float]


@dataclass(frozen=True)
class _Delay:
    """The least seconds until the next turn, and the time of the next one if nothing happens (None: none)."""

    seconds: float
    until: float | None


@dataclass
class JobController:
    """Keeps one job going, one turn at a time.

    `on_gone` is called with the job's uid when its resource turns out not to exist any more, `waits` when nothing can
    be done until there is room for the job.
    """

    source: InitVar[Object]
    dependencies: JobControllerDependencies
    on_gone: Callable[[str], None]
    on_waiting: Callable[[str], None]
    _task: asyncio.Task[None] | None = None
    _is_reconciling: bool = False
    _is_stopping: bool = False
    _urgent: bool = True
    _failures: int = 0
    _complaints: set[str] = field(default_factory=set)
    _share: CpuShare = field(default_factory=CpuShare)

    def __post_init__(self, source: Object) -> None:
        self._status_writer = StatusWriter(self.dependencies.writing.read(source), self.dependencies.writing)
        self._changed = asyncio.Event()

    @property
    def resource(self) -> Resource:
        """The newest version of the job's resource."""
        return self._status_writer.newest

    def take(self, source: Object) -> None:
        """Hear of a version of the resource."""
        if self._status_writer.take(source):
            self.wake()

    def wake(self) -> None:
        """Something of the job changed. A controller that had nothing left to do begins again."""
        self._urgent = True
        self._changed.set()
        if self._task is None and not self._is_stopping:
            self._task = asyncio.create_task(self._run(), name=f"job {self.resource}")

    def stop(self) -> asyncio.Task[None] | None:
        """Begin no more turns; the task of the one that is under way."""
        self._is_stopping = True
        if self._task is not None and not self._is_reconciling:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        try:
            while not self._is_stopping:
                delay = await self._reconcile_once()
                # Nothing is left to do, and nothing has happened meanwhile: the next news begins anew.
                if delay is None and not self._changed.is_set():
                    return
                if delay is not None and not self._is_stopping:
                    await self._wait_for_change(delay)
        finally:
            self._task = None

    async def _reconcile_once(self) -> _Delay | None:
        """One turn, and what comes of its failure; None: there is nothing left to do."""
        self._changed.clear()
        self._urgent = False
        meter = Metered(self._reconcile(), self.dependencies.processor, self.resource.namespace)
        self._is_reconciling = True
        try:
            requeue = await meter
        except JobGone:
            self.on_gone(self.resource.uid)
            return None
        except Superseded:
            return _Delay(MIN_DELAY_SECONDS, self.dependencies.clock())
        except NotLeading:
            # Either the Lease is renewed in a moment, or this controller is stopped.
            return _Delay(NOT_LEADING_SECONDS, self.dependencies.clock())
        except StatusUnclear as problem:
            self._complain(str(problem), str(problem))
            return None
        except ApiError as error:
            seconds = self._failed(error)
            self._complain(str(error), f"{error.status} {error.reason}")
        except Exception as bug:  # noqa: BLE001 - a mistake in one job's turn must not stop the others
            seconds = self._failed(None) * BUG_BACKOFF_FACTOR
            self._complain("".join(traceback.format_exception(bug)).rstrip(), _place(bug))
        else:
            self._failures = 0
            self._complaints.clear()
            delay = max(MIN_DELAY_SECONDS, self._share.delay(meter.seconds, self.dependencies.clock()))
            return None if requeue.is_over else _Delay(delay, requeue.until)
        finally:
            self._is_reconciling = False
        if not self._is_stopping:
            await asyncio.sleep(seconds)
        return _Delay(0.0, self.dependencies.clock())

    async def _reconcile(self) -> Requeue:
        dependencies, status_writer = self.dependencies, self._status_writer
        resource = status_writer.begin()
        # Kubernetes deletes its children: create none. What it doesn't know of, the backend has to end.
        if resource.is_leaving:
            if resource.holder is None:
                return Requeue(None, is_over=True)
            return await dependencies.backends[resource.holder].leave(resource, status_writer)
        # The status does not say whether the job ran: do nothing, or it could run twice.
        if resource.unclear:
            problems, now = resource.unclear, dependencies.clock()
            await status_writer.annotate(unreadable(resource.status_fields, problems, resource.generation, now))
            raise StatusUnclear("; ".join(map(str, problems)))
        job = self._apply_defaults(resource)
        if isinstance(job, InvalidResource):
            await status_writer.write(refused(resource.status, job, resource.generation, dependencies.clock()))
            if resource.waits_for_room:
                self.on_waiting(resource.uid)
            return Requeue(None, is_over=True)
        if job.spec.traits.has_collector:
            self._expect(job)
        backend = dependencies.backends[job.spec.backend].of(resource, status_writer)
        result = await reconcile(job, resource.status, backend, status_writer, dependencies.clock())
        until = min((at for at in (result.requeue_at, status_writer.due_at) if at is not None), default=None)
        is_over = result.is_over and until is None
        if is_over:
            dependencies.store.forget(resource.uid)
        return Requeue(until, is_over)

    def _apply_defaults(self, resource: Resource) -> Job | InvalidResource:
        if isinstance(resource.job, InvalidResource):
            return resource.job
        try:
            # A running job keeps running when less is allowed than before; a resumed one is checked again.
            if not resource.status.was_started:
                self.dependencies.admit(resource.job)
            return self.dependencies.apply_defaults(resource.job, resource.status)
        except InvalidResource as unclear:
            return unclear

    def _expect(self, job: Job) -> None:
        """Let the job's agents report; their news wakes this controller."""
        metadata = job.metadata
        created_at = from_text(metadata.creation_timestamp)
        shape = Shape(metadata.uid, job.spec.nodes, procs_per_node(job), created_at, self.resource.namespace)
        self.dependencies.store.register(shape)
        heard = self.dependencies.store.changed(metadata.uid)
        if heard is not self._changed:
            # What came meanwhile is looked at in this turn.
            self._changed = heard

    async def _wait_for_change(self, delay: _Delay) -> None:
        await self._rate_limit(delay.seconds)
        left = None if delay.until is None else max(0.0, delay.until - self.dependencies.clock())
        try:
            async with asyncio.timeout(left):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _rate_limit(self, seconds: float) -> None:
        """Rest, and end a long rest early for what is urgent."""
        before = self._standing() if seconds > URGENT_SECONDS else 0
        while seconds > 0.0:
            step = min(seconds, URGENT_SECONDS)
            await asyncio.sleep(step)
            seconds -= step
            if seconds > 0.0 and (self._urgent or (self._changed.is_set() and self._standing() != before)):
                return

    def _standing(self) -> int:
        job = self.resource.job
        nodes = 0 if isinstance(job, InvalidResource) else job.spec.nodes
        return standing(self.dependencies.store.agent(self.resource.uid, node) for node in range(nodes))

    def _failed(self, error: ApiError | None) -> float:
        """Seconds to wait after one more failure in a row."""
        seconds = backoff_seconds(self._failures, error, self.dependencies.chance())
        self._failures += 1
        return seconds

    def _complain(self, text: str, kind: str) -> None:
        """Log a failure once for each kind of it, until a turn goes well."""
        if kind not in self._complaints:
            self._complaints.add(kind)
            _log.warning("%s: %s", self.resource, text)


def _place(bug: Exception) -> str:
    """What tells one mistake from another: its type and where it was made, not what it was about."""
    frames = traceback.extract_tb(bug.__traceback__)
    return f"{type(bug).__name__} {[(frame.filename, frame.lineno) for frame in frames]}"

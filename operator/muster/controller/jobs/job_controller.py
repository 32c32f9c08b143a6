"""The controller of one job: a task that reconciles the job until it is over."""

from __future__ import annotations

import asyncio
import itertools
import logging
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, TypeAlias

from muster.api.backends import BackendName
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.base import ClusterBackend, Requeue
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.fair_slots import creation_order
from muster.collector.store import RankStore
from muster.controller.jobs.cpu_time import MeteredCoroutine
from muster.controller.jobs.processor_queue import Place, ProcessorQueue, Stage
from muster.controller.jobs.reconcile_delay import MIN_DELAY_SECONDS, CpuShare, ReconcileDelay, make_delay
from muster.controller.status.writer import (
    JobNotFound,
    NotLeading,
    ResourceChanged,
    StatusWriter,
    StatusWriterDependencies,
)
from muster.core.reports.job_shape import make_job_shape
from muster.core.status.unreconciled.refused_status import make_refused_status
from muster.core.status.unreconciled.unreadable_status import make_unreadable_status
from muster.engine.reconcile import reconcile
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource

NOT_LEADING_RETRY_SECONDS = 0.5
"""The delay before a retry if this process doesn't hold the Lease."""

BUG_BACKOFF_FACTOR = 4.0
"""The backoff after a bug in muster is multiplied by this factor: a retry rarely helps."""

_log = logging.getLogger(__name__)


Reconcile: TypeAlias = Callable[[], Coroutine[Any, Any, Requeue]]


def run_unmeasured(work: Reconcile) -> Coroutine[Any, Any, Requeue]:
    """Run the reconcile without metrics: the default of `measure`."""
    return work()


class UnreadableStatus(Exception):
    """The job's status has fields that muster can't read."""


@dataclass(frozen=True)
class JobControllerDependencies:
    """The components that all job controllers use.

    `apply_defaults` completes a spec for its backend. `admit` raises `InvalidResource` if the job's namespace may not
    use what the job requests. `processor` shares the event loop's time among namespaces. `clock` returns Unix seconds,
    `jitter` a random number from 0 to 1. `job_numbers` has the numbers of new jobs: the actions of the job with the
    lowest number are first. `measure` wraps each reconcile, for metrics.
    """

    backends: Mapping[BackendName, ClusterBackend]
    store: RankStore
    status_writer: StatusWriterDependencies
    apply_defaults: Callable[[Job, Status], Job]
    admit: Callable[[Job], None]
    clock: Callable[[], float]
    processor: ProcessorQueue
    jitter: Callable[[], float]
    job_numbers: Iterator[int] = field(default_factory=partial(itertools.count, 1))
    measure: Callable[[Reconcile], Coroutine[Any, Any, Requeue]] = run_unmeasured


@dataclass
class JobController:
    """Reconciles one job.

    `on_deleted` is called with the job's uid when the resource no longer exists, `on_waiting` when the job has to wait
    for memory, and `on_other_shard` when another shard has written the job's first status.
    """

    source: InitVar[Object]
    dependencies: JobControllerDependencies
    on_deleted: Callable[[str], None]
    on_waiting: Callable[[str], None]
    on_other_shard: Callable[[str], None]
    _task: asyncio.Task[None] | None = None
    _meter: MeteredCoroutine[Requeue] | None = None
    _is_stopping: bool = False
    _is_urgent: bool = True
    _failures: int = 0
    _logged_failure_kinds: set[str] = field(default_factory=set)
    _share: CpuShare = field(default_factory=CpuShare)

    def __post_init__(self, source: Object) -> None:
        writer_dependencies = self.dependencies.status_writer
        self._status_writer = StatusWriter(writer_dependencies.read(source), writer_dependencies, self._begin_actions)
        self._change_event = asyncio.Event()
        self._number = next(self.dependencies.job_numbers)

    @property
    def resource(self) -> Resource:
        """The newest known version of the job's resource."""
        return self._status_writer.newest_resource

    def handle_change(self, source: Object) -> None:
        """Handle a new version of the resource."""
        if self._status_writer.handle_change(source):
            self.wake()

    def wake(self) -> None:
        """Reconcile soon, because something about the job changed. Restarts a finished controller."""
        self._is_urgent = True
        self._change_event.set()
        if self._task is None and not self._is_stopping:
            self._task = asyncio.create_task(self._run(), name=f"job {self.resource}")

    def stop(self) -> asyncio.Task[None] | None:
        """Start no more reconciles. Return the task of the current one."""
        self._is_stopping = True
        if self._task is not None and self._meter is None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        creation_order.set(self._number)
        try:
            while not self._is_stopping:
                delay = await self._reconcile_once()
                # The job is over, and no event has arrived meanwhile: end the task. The next event restarts it.
                if delay is None and not self._change_event.is_set():
                    return
                if delay is not None and not self._is_stopping:
                    await self._wait_for_change(delay)
        finally:
            self._task = None

    async def _reconcile_once(self) -> ReconcileDelay | None:
        """Reconcile once and handle failures. Return None if the job needs no other reconcile."""
        work = self.dependencies.measure(self._reconcile)
        meter = self._meter = MeteredCoroutine(work, self.dependencies.processor, self.resource.namespace)
        try:
            requeue = await meter
        except JobNotFound:
            self.on_deleted(self.resource.uid)
            return None
        except ResourceChanged:
            return self._retry_after(MIN_DELAY_SECONDS)
        except NotLeading:
            # Soon, this process either renews the Lease or stops this controller.
            return self._retry_after(NOT_LEADING_RETRY_SECONDS)
        except UnreadableStatus as problem:
            self._log_once(str(problem), str(problem))
            return None
        except ApiError as error:
            seconds = self._next_backoff(error)
            self._log_once(str(error), f"{error.status} {error.reason}")
        except Exception as bug:  # noqa: BLE001 - a bug in one job must not stop the others
            seconds = self._next_backoff(None) * BUG_BACKOFF_FACTOR
            self._log_once("".join(traceback.format_exception(bug)).rstrip(), _locate_bug(bug))
        else:
            self._failures = 0
            self._logged_failure_kinds.clear()
            return None if requeue.is_over else self._make_delay(meter.seconds, requeue.at)
        finally:
            self._meter = None
        if not self._is_stopping:
            await asyncio.sleep(seconds)
        return self._retry_after(0.0)

    def _begin_actions(self) -> None:
        if self._meter is not None:
            self._meter.place = Place(Stage.ACTION, self._number)

    def _make_delay(self, used_seconds: float, requeue_at: float | None) -> ReconcileDelay:
        share_seconds = self._share.get_delay(used_seconds, self.dependencies.clock())
        wait_seconds = self.dependencies.processor.mean_waits.get(self.resource.namespace)
        return make_delay(share_seconds, used_seconds, wait_seconds, requeue_at)

    def _retry_after(self, seconds: float) -> ReconcileDelay:
        return ReconcileDelay(seconds, seconds, self.dependencies.clock())

    async def _reconcile(self) -> Requeue:
        dependencies, status_writer = self.dependencies, self._status_writer
        # Clear the events only now, when the first step has its turn: this reconcile handles all events until now.
        self._change_event.clear()
        dependencies.store.clear_state_change(self.resource.uid)
        self._is_urgent = False
        resource = status_writer.begin_reconcile()
        if not dependencies.status_writer.shard.has_job(resource.uid, resource.status_fields):
            self.on_other_shard(resource.uid)
            return Requeue(None, is_over=True)
        # Kubernetes deletes the job's objects: create none. A backend has to stop a training job outside the cluster.
        if resource.is_terminating:
            if resource.finalizing_backend is None:
                return Requeue(None, is_over=True)
            return await dependencies.backends[resource.finalizing_backend].finalize(resource, status_writer)
        # An unreadable status doesn't show whether the job ran. Don't start it, because it could run twice.
        if resource.status_problems:
            problems, now = resource.status_problems, dependencies.clock()
            await status_writer.write_fields(
                make_unreadable_status(resource.status_fields, problems, resource.generation, now)
            )
            raise UnreadableStatus("; ".join(map(str, problems)))
        job = self._apply_defaults(resource)
        if isinstance(job, InvalidResource):
            await status_writer.write(
                make_refused_status(resource.status, job, resource.generation, dependencies.clock())
            )
            if resource.waits_for_memory:
                self.on_waiting(resource.uid)
            return Requeue(None, is_over=True)
        if job.spec.traits.has_collector:
            self._register_agents(job)
        backend = dependencies.backends[job.spec.backend].for_job(resource, status_writer)
        result = await reconcile(job, resource.status, backend, status_writer, dependencies.clock())
        is_over = result.is_over and result.requeue_at is None and status_writer.progress_due_at is None
        if is_over:
            dependencies.store.remove_job(resource.uid)
        return Requeue(result.requeue_at, is_over)

    def _apply_defaults(self, resource: Resource) -> Job | InvalidResource:
        if isinstance(resource.job, InvalidResource):
            return resource.job
        try:
            # A started job continues even if the configuration allows less than before. A resumed job is checked again.
            if not resource.status.was_ever_started:
                self.dependencies.admit(resource.job)
            return self.dependencies.apply_defaults(resource.job, resource.status)
        except InvalidResource as error:
            return error

    def _register_agents(self, job: Job) -> None:
        """Accept reports of the job's agents; new reports wake this controller."""
        self.dependencies.store.register_job(make_job_shape(job, self.resource.namespace))
        change_event = self.dependencies.store.get_change_event(job.metadata.uid)
        if change_event is not self._change_event:
            # This reconcile handles the reports that have already arrived.
            self._change_event = change_event

    async def _wait_for_change(self, delay: ReconcileDelay) -> None:
        await delay.wait(self.dependencies.clock(), self._has_urgent_change)
        while not self._has_urgent_change():
            times = (delay.requeue_at, self._status_writer.progress_due_at)
            due_at = min((at for at in times if at is not None), default=None)
            has_progress = await self._wait_for_event(due_at) or self._status_writer.progress_due_at is not None
            self._change_event.clear()
            now = self.dependencies.clock()
            if self._has_urgent_change() or (delay.requeue_at is not None and now >= delay.requeue_at):
                return
            # Mere progress reconciles the job only when it may be written.
            if has_progress and self._status_writer.plan_progress() <= now:
                return

    async def _wait_for_event(self, due_at: float | None) -> bool:
        """Wait for an event until `due_at` (Unix seconds). Return whether there was one."""
        timeout = None if due_at is None else max(0.0, due_at - self.dependencies.clock())
        try:
            async with asyncio.timeout(timeout):
                await self._change_event.wait()
        except TimeoutError:
            return False
        return True

    def _has_urgent_change(self) -> bool:
        return self._is_urgent or self.dependencies.store.has_state_change(self.resource.uid)

    def _next_backoff(self, error: ApiError | None) -> float:
        """Count a failure, and return the seconds until the retry."""
        seconds = compute_backoff_seconds(self._failures, error, self.dependencies.jitter())
        self._failures += 1
        return seconds

    def _log_once(self, text: str, failure_kind: str) -> None:
        """Log the first failure of each kind, until a reconcile succeeds."""
        if failure_kind not in self._logged_failure_kinds:
            self._logged_failure_kinds.add(failure_kind)
            _log.warning("%s: %s", self.resource, text)


def _locate_bug(bug: Exception) -> str:
    """Identify a bug by its type and its stack, without its message."""
    frames = traceback.extract_tb(bug.__traceback__)
    return f"{type(bug).__name__} {[(frame.filename, frame.lineno) for frame in frames]}"

"""Watch the cluster's DistributedTrainingJobs with kopf, in a thread with its own event loop.

kopf has a thread because it needs a millisecond of processor time for each event, and cancels all tasks of its event
loop when it ends.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import kopf

from muster.api.names import GROUP, PLURAL, VERSION
from muster.clients.kubernetes.access import find_cluster
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.skipped import SkippedLog
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.watch.kopf_operator import KopfRunner, make_registry, make_settings
from muster.controller.watch.kopf_session import DecodeObject, make_response_class
from muster.objects.kubernetes.job_source import WATCHED_JOBS
from muster.objects.kubernetes.json_parts import Part
from muster.objects.kubernetes.kinds import JOBS, Object
from muster.objects.kubernetes.object_parser import read_object

MAX_FAILURES = 10
"""After this many consecutive failures of kopf, the operator exits, because a new process may help."""

STABLE_SECONDS = 60.0
"""If kopf runs this long, its failures are counted from zero again."""

INACTIVITY_SECONDS = 70.0
"""A watch without messages for this long is broken: the API server sends a bookmark every minute."""

SERVER_TIMEOUT_SECONDS = 290
CLIENT_TIMEOUT_SECONDS = 320
"""The API server ends a watch after the first timeout, kopf after the second. Then kopf starts another one."""

PAGE_SIZE = 10
"""The number of jobs in a page of a list. A whole page is in memory, and each job may have 1.5 MiB."""

IDLE_WORKER_SECONDS = 1.0
"""kopf ends the worker of a resource that has no events for this long. A worker keeps its last object in memory."""

_log = logging.getLogger(__name__)


@dataclass
class ResourceWatch:
    """Calls `on_change` for each change, in the event loop of `start`. First it reports all resources as ADDED.

    After a gap in the watch it reports all existing resources again. An object that doesn't fit into `job_memory`
    is passed without its large parts, and an object for which `is_own` returns False without its spec. Empty
    `namespaces` means all namespaces. `clock` returns seconds, `jitter` a random number from 0 to 1.
    """

    namespaces: tuple[str, ...]
    job_memory: JobMemory
    on_change: Callable[[Change], None]
    clock: Callable[[], float]
    jitter: Callable[[], float]
    is_own: Callable[[Object], bool]
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _kopf: KopfRunner = field(default_factory=KopfRunner)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. It sets `has_ended` when it doesn't restart kopf any more."""
        loop = asyncio.get_running_loop()
        # A daemon thread doesn't keep the process from exiting.
        self._thread = threading.Thread(target=self._run_thread, args=(loop,), name="kopf", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Report no more changes, and let the thread clean up and end."""
        self._kopf.stop()

    def _run_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        failures = 0
        while not self._kopf.stop_requested.is_set() and failures < MAX_FAILURES:
            started_at = self.clock()
            try:
                asyncio.run(self._watch(loop))
            except Exception as problem:  # noqa: BLE001 - kopf raises any error of its tasks
                _log.warning("kopf failed, and muster restarts it: %s: %s", type(problem).__name__, problem)
            failures = 0 if self.clock() - started_at > STABLE_SECONDS else failures + 1
            self._kopf.stop_requested.wait(compute_backoff_seconds(failures, None, self.jitter()))
        _call_in_loop(loop, self.has_ended.set)

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        async def on_event(*, event: kopf.RawEvent, **_: Any) -> None:
            change = Change(_read_type(event["type"]), _get_object(event))
            _call_in_loop(loop, lambda: self._report(change))

        registry = _make_registry(on_event, _make_login(self._decode, SkippedLog(self.clock)))
        await self._kopf.run(registry, _make_settings(), *self.namespaces)

    def _decode(self, part: Part) -> Object:
        source = read_object(part, WATCHED_JOBS.parse_options)
        # No memory is reserved for a job of another shard, and only its identity and status are used.
        return self.job_memory.reserve(source) if self.is_own(source) else {**source, "spec": "{}"}

    def _report(self, change: Change) -> None:
        if not self._kopf.stop_requested.is_set():
            self.on_change(change)


def _make_registry(
    on_event: Callable[..., Awaitable[None]], login: Callable[..., Awaitable[kopf.AiohttpSession]]
) -> kopf.OperatorRegistry:
    registry = make_registry(login)
    # Handle only raw events: a change handler would write annotations and finalizers.
    kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(on_event)
    return registry


def _make_settings() -> kopf.OperatorSettings:
    settings = make_settings()
    settings.watching.chunk_size = PAGE_SIZE
    settings.watching.server_timeout = SERVER_TIMEOUT_SECONDS
    settings.watching.client_timeout = CLIENT_TIMEOUT_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    settings.queueing.idle_timeout = IDLE_WORKER_SECONDS
    return settings


def _make_login(decode: DecodeObject, skipped_log: SkippedLog) -> Callable[..., Awaitable[kopf.AiohttpSession]]:
    """Connect to the same cluster as `clients.kubernetes.client`, with filtered responses."""
    response_class = make_response_class(
        decode,
        lambda reason: skipped_log.log(f"an unknown {JOBS.name}", "", reason),
    )

    async def login(**_: Any) -> kopf.AiohttpSession:
        access = await find_cluster(None)
        try:
            return kopf.AiohttpSession(server=access.url, aiohttp_session=await access.open_session(response_class))
        finally:
            await access.close()

    return login


def _read_type(kind: str | None) -> Literal["ADDED", "MODIFIED", "DELETED"]:
    match kind:
        case "MODIFIED" | "DELETED":
            return kind
        case _:
            return "ADDED"


def _get_object(event: kopf.RawEvent) -> Object:
    source: Any = event["object"]
    resource: Object = source
    return resource


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call `callback` in `loop`, unless the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        _log.debug("the event loop is closed; an event was dropped")

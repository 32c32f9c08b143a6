"""Watch the cluster's DistributedTrainingJobs with kopf, in a thread with its own event loop.

kopf needs a millisecond of processor time for each event, and when it ends it cancels all tasks of its loop.
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
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.skipped import SkippedLog
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.watch.kopf_operator import StoppableRun, new_registry, new_settings
from muster.controller.watch.kopf_session import response_class
from muster.objects.kubernetes.job_source import WATCHED_JOBS
from muster.objects.kubernetes.kinds import JOBS, Object
from muster.objects.kubernetes.reading import read_object

MAX_FAILURES = 10
"""How often in a row kopf is restarted. After that, a new process may fix the problem."""

STABLE_SECONDS = 60.0
"""A failure after this long doesn't count as another one in a row."""

INACTIVITY_SECONDS = 70.0
"""A watch without messages for this long is dead: the API server sends a bookmark every minute."""

SERVER_SECONDS = 290
CLIENT_SECONDS = 320

PAGE_SIZE = 10
"""Jobs in one page of a list. The page is in memory as a whole, and each job may have 1.5 MiB."""

IDLE_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass
class ResourceWatch:
    """Calls `on_change`, in the loop that started it, for each change. First it reports all resources as ADDED.

    After a gap in the watch it reports all of them again, but not those that were deleted during the gap. An object
    that doesn't fit into `room` comes without its large parts. `namespaces` empty: all namespaces. `clock` returns
    seconds, `chance` numbers from 0 to 1.
    """

    namespaces: tuple[str, ...]
    room: JobMemory
    on_change: Callable[[Change], None]
    clock: Callable[[], float]
    chance: Callable[[], float]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _run: StoppableRun = field(default_factory=StoppableRun)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. `ended` is set when kopf ends for good."""
        loop = asyncio.get_running_loop()
        # A daemon thread doesn't keep the process from exiting.
        self._thread = threading.Thread(target=self._work, args=(loop,), name="kopf", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Report no more changes, and let the thread clean up and end."""
        self._run.stop()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        failures = 0
        while not self._run.stopping.is_set() and failures < MAX_FAILURES:
            began = self.clock()
            try:
                asyncio.run(self._watch(loop))
            except Exception as problem:  # noqa: BLE001 - kopf raises what one of its tasks raised
                _log.warning("kopf failed, restarting it: %s: %s", type(problem).__name__, problem)
            failures = 0 if self.clock() - began > STABLE_SECONDS else failures + 1
            self._run.stopping.wait(backoff_seconds(failures, None, self.chance()))
        _call_in_loop(loop, self.ended.set)

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        async def on_event(*, event: kopf.RawEvent, **_: Any) -> None:
            change = Change(_type(event["type"]), _object(event))
            _call_in_loop(loop, lambda: self._report(change))

        registry = _registry(on_event, _login(self.room, SkippedLog(self.clock)))
        await self._run.run(registry, _settings(), *self.namespaces)

    def _report(self, change: Change) -> None:
        if not self._run.stopping.is_set():
            self.on_change(change)


def _registry(
    on_event: Callable[..., Awaitable[None]], login: Callable[..., Awaitable[kopf.AiohttpSession]]
) -> kopf.OperatorRegistry:
    registry = new_registry(login)
    # Handle only raw events: a change handler would write annotations and finalizers.
    kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(on_event)
    return registry


def _settings() -> kopf.OperatorSettings:
    settings = new_settings()
    settings.watching.chunk_size = PAGE_SIZE
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.client_timeout = CLIENT_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    # An idle worker keeps its last object in memory.
    settings.queueing.idle_timeout = IDLE_SECONDS
    return settings


def _login(room: JobMemory, skipped: SkippedLog) -> Callable[..., Awaitable[kopf.AiohttpSession]]:
    """Connect to the same cluster as `clients.kubernetes.client`, with filtered responses."""
    read = response_class(
        lambda part: room.place(read_object(part, WATCHED_JOBS.reading)),
        lambda why: skipped.log(f"an unknown {JOBS.name}", "", why),
    )

    async def login(**_: Any) -> kopf.AiohttpSession:
        access = await find_cluster(None)
        try:
            return kopf.AiohttpSession(server=access.url, aiohttp_session=await access.open_session(read))
        finally:
            await access.close()

    return login


def _type(kind: str | None) -> Literal["ADDED", "MODIFIED", "DELETED"]:
    match kind:
        case "MODIFIED" | "DELETED":
            return kind
        case _:
            return "ADDED"


def _object(event: kopf.RawEvent) -> Object:
    source: Any = event["object"]
    stored: Object = source
    return stored


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call `callback` in `loop`, unless the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        _log.debug("the event loop is closed; an event was dropped")

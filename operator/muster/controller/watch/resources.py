"""The cluster's DistributedTrainingJobs, watched by kopf: on a thread and an event loop of its own.

kopf takes a millisecond of processor time for an event, and on leaving ends every task of the loop that it runs in.
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
from muster.clients.kubernetes.access import find
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.skipped import SkippedLog
from muster.controller.jobs.job_room import JobRoom
from muster.controller.watch.kopf_operator import StoppableRun, new_registry, new_settings
from muster.controller.watch.kopf_session import response_class
from muster.objects.kubernetes.job_source import WATCHED_JOBS
from muster.objects.kubernetes.kinds import JOBS, Object
from muster.objects.kubernetes.reading import read_object

MAX_FAILURES = 10
"""So often in a row kopf is started again. After that something is wrong that a new process may put right."""

GOOD_SECONDS = 60.0
"""When kopf went for so long, its end is not one of a row."""

INACTIVITY_SECONDS = 70.0
"""A watch that says nothing for so long is dead: the API server sends a bookmark every minute."""

SERVER_SECONDS = 290
CLIENT_SECONDS = 320

PAGE = 10
"""Jobs in one answer to a list, which is held whole: each may have 1.5 MiB."""

IDLE_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass
class ResourceWatch:
    """Tells `on_change`, in the loop that started it, what happens to resources; all there are come first, as ADDED.

    Also when the watch had a gap: then they all come once more, and those that vanished in it are not reported.
    An object that does not fit into `room` comes without its large parts. `namespaces` empty: of all namespaces.
    `clock` gives seconds, `chance` numbers from 0 to 1.
    """

    namespaces: tuple[str, ...]
    room: JobRoom
    on_change: Callable[[Change], None]
    clock: Callable[[], float]
    chance: Callable[[], float]
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _run: StoppableRun = field(default_factory=StoppableRun)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. `ended` is set when kopf can't be kept going."""
        loop = asyncio.get_running_loop()
        # A thread that does not end must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, args=(loop,), name="kopf", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread works."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Tell nothing any more, and let the thread end when it has tidied up."""
        self._run.stop()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        failures = 0
        while not self._run.stopping.is_set() and failures < MAX_FAILURES:
            began = self.clock()
            try:
                asyncio.run(self._watch(loop))
            except Exception as problem:  # noqa: BLE001 - kopf ends with whatever one of its tasks ended with
                _log.warning("kopf ended, and is started again: %s: %s", type(problem).__name__, problem)
            failures = 0 if self.clock() - began > GOOD_SECONDS else failures + 1
            self._run.stopping.wait(backoff_seconds(failures, None, self.chance()))
        _call(loop, self.ended.set)

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        async def hear(*, event: kopf.RawEvent, **_: Any) -> None:
            change = Change(_type(event["type"]), _object(event))
            _call(loop, lambda: self._tell(change))

        registry = _registry(hear, _login(self.room, SkippedLog(self.clock)))
        await self._run.run(registry, _settings(), *self.namespaces)

    def _tell(self, change: Change) -> None:
        if not self._run.stopping.is_set():
            self.on_change(change)


def _registry(
    hear: Callable[..., Awaitable[None]], login: Callable[..., Awaitable[kopf.AiohttpSession]]
) -> kopf.OperatorRegistry:
    registry = new_registry(login)
    # Only spying: a handler of changes would write annotations and finalizers.
    kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(hear)
    return registry


def _settings() -> kopf.OperatorSettings:
    settings = new_settings()
    settings.watching.chunk_size = PAGE
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.client_timeout = CLIENT_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    # A worker that is idle keeps the last object that it heard of.
    settings.queueing.idle_timeout = IDLE_SECONDS
    return settings


def _login(room: JobRoom, skipped: SkippedLog) -> Callable[..., Awaitable[kopf.AiohttpSession]]:
    """The same way to the same cluster as `clients.kubernetes.client` goes, with answers that kopf can be given."""
    read = response_class(
        lambda part: room.place(read_object(part, WATCHED_JOBS.reading)),
        lambda why: skipped.tell(f"{JOBS.name}, unknown which one,", "", why),
    )

    async def login(**_: Any) -> kopf.AiohttpSession:
        access = await find(None)
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


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Have `what` called in `loop`; nothing happens when that has been closed."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        _log.debug("told to a loop that has ended")

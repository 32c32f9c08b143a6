"""Report changes of a job's status, as Kubernetes Events and as log lines."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from muster.api.names import API_VERSION, KIND
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp, parse_timestamp
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.controller.status.fair_queue import FairQueue
from muster.core.status.events import JobEvent, list_new_events, list_past_events
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS, Object
from muster.objects.kubernetes.resource import Resource

EVENTS_PER_SECOND = 20.0
"""The rate of all jobs' Events. It is low, to spare the API server."""

MAX_QUEUED_EVENTS = 10_000
"""The maximum number of queued Events. Further Events are dropped: the status has all information."""

MAX_ATTEMPTS = 12
"""The maximum number of attempts to send an Event. With the backoff, they take 90 seconds."""

EVENT_TTL_SECONDS = 3600.0
"""API servers keep Events this long by default. Events about older changes are not posted."""

MAX_MESSAGE_CHARS = 1024
"""The API server's limit."""

COMPONENT = "muster"

_log = logging.getLogger(__name__)


class _Priority(IntEnum):
    """The priority of an Event."""

    NEW = 0
    LATE = 1


@dataclass(frozen=True)
class _QueuedEvent:
    """An Event to send."""

    resource: Resource
    body: Object


@dataclass
class EventPoster:
    """Posts Events about status changes. `identity` is this process' name.

    Namespaces take turns. `clock` returns Unix seconds, `jitter` a random number from 0 to 1.
    """

    client: Client
    identity: str
    clock: Callable[[], float]
    jitter: Callable[[], float]
    _queued_events: FairQueue[_QueuedEvent] = field(default_factory=lambda: FairQueue(MAX_QUEUED_EVENTS))

    def post(self, resource: Resource, before: Status, after: Status) -> None:
        """Queue Events for the changes from one status to the next."""
        self._queue(_Priority.NEW, resource, list_new_events(before, after))

    def post_missed(self, resource: Resource) -> None:
        """Queue Events for the past changes in the job's status: the last leader may have ended before it posted them.

        If an Event was posted before, it has the same name, and the API server refuses the second one.
        """
        oldest = self.clock() - EVENT_TTL_SECONDS
        recent = (event for event in list_past_events(resource.status) if _is_after(event.since, oldest))
        self._queue(_Priority.LATE, resource, recent)

    async def run(self) -> None:
        """Send queued Events, until cancelled."""
        async with asyncio.TaskGroup() as send_tasks:
            while True:
                item = await self._queued_events.get()
                send_tasks.create_task(self._send(item))
                await asyncio.sleep(1.0 / EVENTS_PER_SECOND)

    def _queue(self, priority: _Priority, resource: Resource, job_events: Iterable[JobEvent]) -> None:
        for event in job_events:
            body = make_event(resource, event, self.identity, self.clock())
            if not self._queued_events.put(resource.namespace, priority, _QueuedEvent(resource, body)):
                _log.warning(
                    "%s: dropped an Event, because too many are queued: %s: %s", resource, event.reason, event.message
                )

    async def _send(self, item: _QueuedEvent) -> None:
        for failures in range(MAX_ATTEMPTS):
            try:
                await self.client.create(EVENTS, item.resource.namespace, item.body)
            except ApiError as error:
                # An earlier attempt or the last leader has created the Event.
                if error.already_exists:
                    return
                problem = error
            else:
                return
            # A retry would fail again: the request is invalid, or the namespace was deleted.
            if problem.is_refusal or problem.is_not_found:
                break
            await asyncio.sleep(compute_backoff_seconds(failures, problem, self.jitter()))
        _log.warning("%s: an Event could not be sent: %s", item.resource, problem)


@dataclass(frozen=True)
class StatusPublisher:
    """Posts Events and logs a line. Call it after each status write."""

    events: EventPoster

    def __call__(self, resource: Resource, before: Status, after: Status) -> None:
        self.events.post(resource, before, after)
        # Log only changes of the phase; the status has all details.
        if before.phase != after.phase or not before.conditions:
            # A message may quote users' text with newlines, but a log entry is one line.
            _log.info("%s: %s: %s", resource, after.phase, " ".join(after.message.split()))


def _is_after(time: str, oldest: float) -> bool:
    try:
        return parse_timestamp(time) > oldest
    except ValueError:
        # The time is invalid: another client wrote it.
        return False


def make_event(resource: Resource, event: JobEvent, identity: str, now: float) -> Object:
    """Return the Event's body. Its name depends only on `event` and the resource. `now` is in Unix seconds."""
    at = format_timestamp(now)
    deduplication_key = event.message if event.deduplication_key is None else event.deduplication_key
    value = (resource.uid, event.type, event.reason, event.since, deduplication_key)
    name = f"{resource.name}.{hashlib.sha256('|'.join(value).encode()).hexdigest()[:16]}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": resource.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": resource.namespace,
            "name": resource.name,
            "uid": resource.uid,
            "resourceVersion": resource.version,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:MAX_MESSAGE_CHARS],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": identity,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }

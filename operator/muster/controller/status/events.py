"""Publish written statuses: Kubernetes Events for the job's owner, log lines for the operator's."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from muster.api.names import API_VERSION, KIND
from muster.api.status.status import Status
from muster.api.timestamps import format_seconds, parse_timestamp
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.controller.status.fair_queue import FairQueue
from muster.core.status.events import JobEvent, new_events, past_events
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS, Object
from muster.objects.kubernetes.resource import Resource

EVENTS_PER_SECOND = 20.0
"""The rate of all jobs' Events, low because they only inform people."""

MAX_QUEUED_EVENTS = 10_000
"""The maximum number of queued Events, of all namespaces. Further ones are dropped: the status has all information."""

MAX_ATTEMPTS = 12
"""The maximum number of attempts to send an Event. With the backoff, they take 90 seconds."""

EVENT_TTL_SECONDS = 3600.0
"""How long API servers keep Events: older ones are not posted."""

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
    """Posts Events about written statuses. `identity` is this process' name.

    Namespaces take turns. `clock` returns Unix seconds, `chance` numbers from 0 to 1.
    """

    client: Client
    identity: str
    clock: Callable[[], float]
    chance: Callable[[], float]
    _waiting: FairQueue[_QueuedEvent] = field(default_factory=lambda: FairQueue(MAX_QUEUED_EVENTS))

    def post(self, resource: Resource, before: Status, after: Status) -> None:
        """Queue Events for the changes from one status to the next."""
        self._queue(_Priority.NEW, resource, new_events(before, after))

    def post_missed(self, resource: Resource) -> None:
        """Queue Events for the steps in the job's status: the last leader may have ended before it posted them.

        An Event that was posted before has the same name, so the API server refuses it as existing.
        """
        oldest = self.clock() - EVENT_TTL_SECONDS
        recent = (note for note in past_events(resource.status) if _is_after(note.since, oldest))
        self._queue(_Priority.LATE, resource, recent)

    async def run(self) -> None:
        """Send queued Events, until cancelled."""
        async with asyncio.TaskGroup() as sending:
            while True:
                queued = await self._waiting.get()
                sending.create_task(self._send(queued))
                await asyncio.sleep(1.0 / EVENTS_PER_SECOND)

    def _queue(self, priority: _Priority, resource: Resource, new_notes: Iterable[JobEvent]) -> None:
        for note in new_notes:
            body = make_event(resource, note, self.identity, self.clock())
            if not self._waiting.put(resource.namespace, priority, _QueuedEvent(resource, body)):
                _log.warning(
                    "%s: dropped an Event, because too many are queued: %s: %s", resource, note.reason, note.message
                )

    async def _send(self, queued: _QueuedEvent) -> None:
        for failures in range(MAX_ATTEMPTS):
            try:
                await self.client.create(EVENTS, queued.resource.namespace, queued.body)
            except ApiError as error:
                # An earlier attempt, or the last leader, has created it.
                if error.already_exists:
                    return
                problem = error
            else:
                return
            # A retry would fail again: the request is invalid, or the namespace was deleted.
            if problem.is_refusal or problem.is_not_found:
                break
            await asyncio.sleep(backoff_seconds(failures, problem, self.chance()))
        _log.warning("%s: an Event could not be sent: %s", queued.resource, problem)


@dataclass(frozen=True)
class StatusPublisher:
    """Called after each status write."""

    events: EventPoster

    def __call__(self, resource: Resource, before: Status, after: Status) -> None:
        self.events.post(resource, before, after)
        # Log only a new phase; details within a phase are in the status.
        if before.phase != after.phase or not before.conditions:
            # A message may quote users' text with newlines, but a log entry is one line.
            _log.info("%s: %s: %s", resource, after.phase, " ".join(after.message.split()))


def _is_after(time: str, oldest: float) -> bool:
    try:
        return parse_timestamp(time) > oldest
    except ValueError:
        # Another client wrote this time.
        return False


def make_event(resource: Resource, note: JobEvent, identity: str, now: float) -> Object:
    """Return the Event for a note. The same note always gets the same name. `now` is in Unix seconds."""
    at = format_seconds(now)
    occasion = note.message if note.occasion is None else note.occasion
    value = (resource.uid, note.type, note.reason, note.since, occasion)
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
        "type": note.type,
        "reason": note.reason,
        "message": note.message[:MAX_MESSAGE_CHARS],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": identity,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }

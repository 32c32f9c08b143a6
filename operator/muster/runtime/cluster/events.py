"""Kubernetes Events about jobs: what `kubectl describe` and `kubectl get events` show beside the status."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.api.names import API_VERSION, KIND
from muster.api.status import Status
from muster.api.timestamps import to_seconds
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.kinds import EVENTS, Object
from muster.runtime.cluster.resource import Resource
from muster.status.events import Note, notes

PER_SECOND = 20.0
"""Events of all jobs together: they are for people, and the API server has better things to do."""

MAX_WAITING = 1000
"""Events that wait to be sent; further ones are dropped, for the status says it all."""

MAX_MESSAGE_CHARS = 1024
"""The API server's limit."""

COMPONENT = "muster"

_log = logging.getLogger(__name__)


@dataclass
class EventPoster:
    """Tells of statuses that were written. `clock` gives Unix seconds, `identity` is this process's name."""

    client: Client
    identity: str
    clock: Callable[[], float]
    _waiting: asyncio.Queue[tuple[Resource, Object]] = field(default_factory=lambda: asyncio.Queue(MAX_WAITING))

    def tell(self, resource: Resource, before: Status, after: Status) -> None:
        """Queue what is worth an event of the way from one status to the next."""
        for note in notes(before, after):
            try:
                self._waiting.put_nowait((resource, event(resource, after, note, self.identity, self.clock())))
            except asyncio.QueueFull:
                _log.warning("%s: too many events wait; not sent: %s: %s", resource, note.reason, note.message)

    async def run(self) -> None:
        """Send what is queued, for ever."""
        while True:
            resource, body = await self._waiting.get()
            try:
                await self.client.create(EVENTS, resource.namespace, body)
            except ApiError as error:
                # An earlier attempt, or the leader before this one, has told it.
                if not error.already_exists:
                    _log.warning("%s: an event could not be sent: %s", resource, error)
            await asyncio.sleep(1.0 / PER_SECOND)


def event(resource: Resource, status: Status, note: Note, identity: str, now: float) -> Object:
    """The Event of a note; told again it has the same name. `now` is in Unix seconds."""
    at = to_seconds(now)
    told = (resource.uid, str(resource.generation), str(status.incarnation), note.type, note.reason, note.message)
    name = f"{resource.name}.{hashlib.sha256('|'.join(told).encode()).hexdigest()[:16]}"
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

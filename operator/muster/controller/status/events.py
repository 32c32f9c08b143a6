"""Kubernetes Events about jobs: what `kubectl describe` and `kubectl get events` show beside the status."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from muster.api.names import API_VERSION, KIND
from muster.api.status.status import Status
from muster.api.timestamps import from_text, to_seconds
from muster.clients.kubernetes.backoff import backoff_seconds
from muster.clients.kubernetes.client import Client
from muster.controller.status.outbox import Outbox
from muster.core.status.events import Note, notes, steps_so_far
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import EVENTS, Object
from muster.objects.kubernetes.resource import Resource

PER_SECOND = 20.0
"""Events of all jobs together: they are for people, and the API server has better things to do."""

MAX_WAITING = 10_000
"""Events that wait to be sent, of all namespaces; further ones are dropped, for the status says it all."""

ATTEMPTS = 12
"""So often an event is sent while the API server doesn't take it: for a minute and a half, with the pauses between."""

KEPT_SECONDS = 3600.0
"""How long API servers keep events: what is older than that isn't told any more."""

MAX_MESSAGE_CHARS = 1024
"""The API server's limit."""

COMPONENT = "muster"

_log = logging.getLogger(__name__)


class _Rank(IntEnum):
    """What is sent first."""

    NEW = 0
    LATE = 1


@dataclass(frozen=True)
class _Letter:
    """An event on its way."""

    resource: Resource
    body: Object


@dataclass
class EventPoster:
    """Tells of statuses that were written. `clock` gives Unix seconds, `identity` is this process's name.

    Namespaces take turns. `chance` gives numbers from 0 to 1.
    """

    client: Client
    identity: str
    clock: Callable[[], float]
    chance: Callable[[], float]
    _waiting: Outbox[_Letter] = field(default_factory=lambda: Outbox(MAX_WAITING))

    def tell(self, resource: Resource, before: Status, after: Status) -> None:
        """Queue what is worth an event of the way from one status to the next."""
        self._queue(_Rank.NEW, resource, notes(before, after))

    def catch_up(self, resource: Resource) -> None:
        """Queue what its status says of the job's way: who wrote it may have died before it told.

        What was told has the same name, and is refused as there already.
        """
        oldest = self.clock() - KEPT_SECONDS
        recent = (note for note in steps_so_far(resource.status) if _is_after(note.since, oldest))
        self._queue(_Rank.LATE, resource, recent)

    async def run(self) -> None:
        """Send what is queued, for ever."""
        async with asyncio.TaskGroup() as sending:
            while True:
                letter = await self._waiting.get()
                sending.create_task(self._send(letter))
                await asyncio.sleep(1.0 / PER_SECOND)

    def _queue(self, rank: _Rank, resource: Resource, told: Iterable[Note]) -> None:
        for note in told:
            body = event(resource, note, self.identity, self.clock())
            if not self._waiting.put(resource.namespace, rank, _Letter(resource, body)):
                _log.warning("%s: too many events wait; not sent: %s: %s", resource, note.reason, note.message)

    async def _send(self, letter: _Letter) -> None:
        for failures in range(ATTEMPTS):
            try:
                await self.client.create(EVENTS, letter.resource.namespace, letter.body)
            except ApiError as error:
                # An earlier attempt, or the leader before this one, has told it.
                if error.already_exists:
                    return
                problem = error
            else:
                return
            # The same answer would come again; or its namespace is gone.
            if problem.is_refusal or problem.is_not_found:
                break
            await asyncio.sleep(backoff_seconds(failures, problem, self.chance()))
        _log.warning("%s: an event could not be sent: %s", letter.resource, problem)


def _is_after(time: str, oldest: float) -> bool:
    try:
        return from_text(time) > oldest
    except ValueError:
        # Somebody else wrote it.
        return False


def event(resource: Resource, note: Note, identity: str, now: float) -> Object:
    """The Event of a note; told again it has the same name. `now` is in Unix seconds."""
    at = to_seconds(now)
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

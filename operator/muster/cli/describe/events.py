"""The events of a job and of its pods, each message once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.api.json_fields import read_integer, read_mapping, read_string
from muster.api.timestamps import parse_untrusted_timestamp
from muster.cli.board.observed_job import ObservedJob
from muster.cli.board.printable import replace_unprintable
from muster.objects.kubernetes.kinds import Object

MAX_GROUPS = 15
"""The maximum number of different events; older ones are left out."""

_TIMES = ("lastTimestamp", "eventTime", "firstTimestamp")
"""An event has one of these, depending on the API with which its writer created it."""


@dataclass(frozen=True)
class EventGroup:
    """Events with the same reason and message. `objects` are the names of the objects, `at` the last time in seconds.

    `count` is how often the event occurred.
    """

    type: str
    reason: str
    message: str
    objects: tuple[str, ...]
    count: int
    at: float


def group_events(events: Iterable[Object]) -> tuple[EventGroup, ...]:
    """Return the latest events, oldest first. Events that differ only in their object are one group."""
    groups: dict[tuple[str, str, str], EventGroup] = {}
    for event in events:
        new = _read_event(event)
        # a message about a pod often contains the pod's name
        key = (new.type, new.reason, new.message.replace(new.objects[0], ""))
        known = groups.get(key)
        groups[key] = new if known is None else _merge(known, new)
    return tuple(sorted(groups.values(), key=lambda group: group.at))[-MAX_GROUPS:]


def select_pod_events(events: Iterable[Object], job: ObservedJob) -> tuple[Object, ...]:
    """Return the events about pods with the names of the job's pods, since the job's creation."""
    names = re.compile(rf"{re.escape(job.name)}-[0-9]+-[0-9]+")
    return tuple(
        event
        for event in events
        # An earlier job of the same name may have had pods with the same names.
        if names.fullmatch(_read_object_name(event)) and _read_time(event) >= (job.created_at or 0.0)
    )


def _merge(first: EventGroup, second: EventGroup) -> EventGroup:
    latest = max(first, second, key=lambda group: group.at)
    objects = tuple(sorted({*first.objects, *second.objects}))
    return replace(latest, objects=objects, count=first.count + second.count)


def _read_event(event: Object) -> EventGroup:
    series = read_mapping(event.get("series"))
    return EventGroup(
        type=_read_text(event, "type"),
        reason=_read_text(event, "reason"),
        message=_read_text(event, "message").strip(),
        objects=(_read_object_name(event),),
        count=max(1, read_integer(series.get("count")) or read_integer(event.get("count")) or 1),
        at=_read_time(event),
    )


def _read_object_name(event: Object) -> str:
    return _read_text(read_mapping(event.get("involvedObject")), "name")


def _read_time(event: Object) -> float:
    """Return the last time of the event, in Unix seconds."""
    series = read_mapping(event.get("series"))
    times = (read_string(series.get("lastObservedTime")), *(read_string(event.get(name)) for name in _TIMES))
    return parse_untrusted_timestamp(next((text for text in times if text), ""))


def _read_text(fields: Object, name: str) -> str:
    # Users may create events with any text.
    return replace_unprintable(read_string(fields.get(name)))

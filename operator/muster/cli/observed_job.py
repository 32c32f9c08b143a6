"""A job on a cluster at one moment, and how it is shown. Pure.

It is not validated: a spec that the operator refuses, or that only a later version knows, has a status nevertheless.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.json_fields import mapping, string, whole
from muster.api.status import Status
from muster.api.status_reader import status_of
from muster.api.timestamps import from_text
from muster.cli.view import View
from muster.kube.kinds import Object
from muster.plan.attempts import REFUSED
from muster.plan.outcome import final_condition

NOBODY_LOOKED = "muster's operator has not looked at it yet"
"""What is said of a job without a status: until the operator takes it up, or because none runs."""


@dataclass(frozen=True)
class ObservedJob:
    """`created_at` is in Unix seconds, None where the resource doesn't say; `generation` is that of its spec."""

    name: str
    uid: str
    generation: int
    created_at: float | None
    status: Status

    @property
    def is_over(self) -> bool:
        """Whether nothing about it will change any more."""
        return final_condition(self.status) is not None

    @property
    def is_refused(self) -> bool:
        """Whether the operator has looked at the spec as it is now, and won't run it before a user corrects it."""
        return self.status.phase == REFUSED and self.status.observed_generation >= self.generation


def read(resource: Object) -> ObservedJob:
    """A resource as the API server gives it."""
    metadata = mapping(resource.get("metadata"))
    status = status_of(resource)
    if not status.conditions and not status.message:
        status = status.model_copy(update={"message": NOBODY_LOOKED})
    return ObservedJob(
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        generation=whole(metadata.get("generation")) or 0,
        created_at=_seconds(string(metadata.get("creationTimestamp"))),
        status=status,
    )


def view_of(observed: ObservedJob, now: float) -> View:
    """What the board shows at `now` (Unix seconds)."""
    return View(observed.name, procs_per_node(observed.status), observed.status, elapsed(observed, now))


def procs_per_node(status: Status) -> int:
    """Ranks on each node, as the operator counted them; 1 before it has."""
    nodes = status.nodes.desired if status.nodes is not None else 0
    world = status.ranks.world if status.ranks is not None else 0
    return max(1, world // nodes) if nodes else 1


def elapsed(observed: ObservedJob, now: float) -> float:
    """Seconds since the ranks were told to start, before that since the job was created; until its end if it's over."""
    began = _seconds(observed.status.start_time or "")
    since = observed.created_at if began is None else began
    ended = _seconds(observed.status.completion_time or "")
    until = now if ended is None else ended
    return 0.0 if since is None else max(0.0, until - since)


def _seconds(text: str) -> float | None:
    try:
        return from_text(text)
    except ValueError:
        return None

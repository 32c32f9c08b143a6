"""A job as observed on a cluster, and its view on the board. Pure.

This module does not validate the spec: a job with an invalid spec, or one of a later version, has a status too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.json_fields import read_integer, read_mapping, read_string
from muster.api.size_limits import find_size_problem
from muster.api.status.reader import read_status
from muster.api.status.status import REFUSED, Status
from muster.api.timestamps import parse_timestamp
from muster.cli.board.printable import replace_unprintable
from muster.cli.board.view import View
from muster.objects.kubernetes.kinds import Object

NOT_RECONCILED = "muster's operator has not processed it yet"
"""The message of a job without a status: the operator has not processed it, or no operator runs."""


@dataclass(frozen=True)
class ObservedJob:
    """`created_at` is in Unix seconds, None if the resource lacks it; `generation` is metadata.generation.

    `resource` is the whole resource, whose text may have control characters.
    """

    name: str
    uid: str
    generation: int
    created_at: float | None
    status: Status
    resource: Object = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.status.final_condition is not None

    @property
    def is_refused(self) -> bool:
        """Whether the operator has rejected the current spec and waits for a change."""
        return self.status.phase == REFUSED and self.status.observed_generation >= self.generation


def read_observed_job(resource: Object) -> ObservedJob:
    """Read a resource from the API server."""
    metadata = read_mapping(resource.get("metadata"))
    return ObservedJob(
        name=read_string(metadata.get("name")),
        uid=read_string(metadata.get("uid")),
        generation=read_integer(metadata.get("generation")) or 0,
        created_at=_parse_seconds(read_string(metadata.get("creationTimestamp"))),
        status=_read_displayed_status(resource.get("status")),
        resource=resource,
    )


def _read_displayed_status(fields: JSON) -> Status:
    """Read the status without control characters, because users who may edit it can write any text.

    Without a message, add one about the missing or unreadable status.
    """
    size_problem = find_size_problem(fields)
    if size_problem is not None:
        return Status(message=f"its status can't be read ({size_problem})")
    status = read_status({"status": _make_printable(fields)})
    if not status.conditions and not status.message:
        return status.model_copy(update={"message": NOT_RECONCILED})
    return status


def _make_printable(value: JSON) -> JSON:
    if isinstance(value, str):
        return replace_unprintable(value)
    if isinstance(value, dict):
        return {replace_unprintable(key): _make_printable(item) for key, item in value.items()}
    return [_make_printable(item) for item in value] if isinstance(value, list) else value


def build_view(observed_job: ObservedJob, now: float) -> View:
    """Build the board's view at `now` (Unix seconds)."""
    return View(
        observed_job.name,
        read_procs_per_node(observed_job.status),
        observed_job.status,
        compute_elapsed_seconds(observed_job, now),
    )


def read_procs_per_node(status: Status) -> int:
    """Return the number of ranks on each node, as the operator resolved it; 1 before that."""
    nodes = status.nodes.desired if status.nodes is not None else 0
    world = status.ranks.world if status.ranks is not None else 0
    return max(1, world // nodes) if nodes else 1


def compute_elapsed_seconds(observed_job: ObservedJob, now: float) -> float:
    """Return the seconds from the start of the ranks, or else from the job's creation, until the job's end or now."""
    began = _parse_seconds(observed_job.status.start_time or "")
    since = observed_job.created_at if began is None else began
    ended = _parse_seconds(observed_job.status.completion_time or "")
    until = now if ended is None else ended
    return 0.0 if since is None else max(0.0, until - since)


def _parse_seconds(text: str) -> float | None:
    try:
        return parse_timestamp(text)
    except ValueError:
        return None

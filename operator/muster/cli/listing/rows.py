"""The jobs of a cluster as rows of a table, and their order by what needs attention. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from muster.api.json_fields import read_integer, read_mapping, read_string
from muster.api.status.status import REFUSED, RESTARTING, Status
from muster.api.timestamps import parse_timestamp
from muster.cli.board.observed_job import read_observed_job
from muster.cli.board.printable import replace_unprintable
from muster.objects.kubernetes.kinds import Object

_DEFAULT_BACKEND = "Kubernetes"


class Attention(IntEnum):
    """How much a job needs the attention of its user: the lower, the more."""

    STALLED = 0
    FAILED = 1
    RESTARTING = 2
    SLOW = 3
    RUNNING = 4
    WAITING = 5
    ENDED = 6


_PHASES: Mapping[str, Attention] = MappingProxyType(
    {
        "Failed": Attention.FAILED,
        RESTARTING: Attention.RESTARTING,
        "Running": Attention.RUNNING,
        "Suspended": Attention.ENDED,
        "Succeeded": Attention.ENDED,
    }
)


@dataclass(frozen=True)
class JobRow:
    """A job. `created_at` and `ended_at` are in Unix seconds; `nodes` is the number in the spec. None: unknown."""

    namespace: str
    name: str
    backend: str
    nodes: int | None
    created_at: float | None
    ended_at: float | None
    status: Status

    @property
    def attention(self) -> Attention:
        """How much the job needs attention."""
        stalled = self.status.find_condition("Stalled")
        # A failed job is Stalled too, so that GitOps tools show it as failed.
        if self.status.final_condition is None and stalled is not None and stalled.status == "True":
            return Attention.STALLED
        if self.status.phase == REFUSED:
            return Attention.FAILED
        attention = _PHASES.get(self.status.phase, Attention.WAITING)
        if attention is Attention.RUNNING and self.status.stragglers is not None:
            return Attention.SLOW
        return attention

    @property
    def remaining_seconds(self) -> int | None:
        """How long the training still takes."""
        return self.status.progress.estimated_remaining_seconds if self.status.progress is not None else None


def read_row(resource: Object) -> JobRow:
    """Read a resource from the API server. Users may edit it, so the row has no control characters."""
    job = read_observed_job(resource)
    metadata, spec = read_mapping(resource.get("metadata")), read_mapping(resource.get("spec"))
    return JobRow(
        namespace=replace_unprintable(read_string(metadata.get("namespace"))),
        name=replace_unprintable(job.name),
        backend=replace_unprintable(read_string(spec.get("backend"))) or _DEFAULT_BACKEND,
        nodes=read_integer(spec.get("nodes")),
        created_at=job.created_at,
        ended_at=_parse_seconds(job.status.completion_time),
        status=job.status,
    )


def sort_by_name(rows: Iterable[JobRow]) -> list[JobRow]:
    """Sort jobs by namespace and name."""
    return sorted(rows, key=lambda row: (row.namespace, row.name))


def sort_by_attention(rows: Iterable[JobRow]) -> list[JobRow]:
    """Sort jobs by what needs attention first: stalled, failed (the latest first), then by the longest remaining time.

    Jobs whose remaining time is unknown follow those whose time is known.
    """
    return sorted(rows, key=_build_attention_key)


def _build_attention_key(row: JobRow) -> tuple[int, float, str, str]:
    latest_first = -(row.ended_at or 0.0)
    longest_first = -(row.remaining_seconds or 0)
    return (row.attention, latest_first if row.ended_at is not None else longest_first, row.namespace, row.name)


def _parse_seconds(text: str | None) -> float | None:
    try:
        return parse_timestamp(text or "")
    except ValueError:
        return None

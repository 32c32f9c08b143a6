"""What `muster describe` reads from the cluster about a job, beside its resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.cli.board.observed_job import ObservedJob
from muster.cli.describe.events import EventGroup
from muster.objects.kubernetes.pods import PodView


@dataclass(frozen=True)
class JobObservations:
    """A job, its pods in the order of nodes, its events, and the last lines of each failed rank.

    `unreadable` has a sentence for each part that the user may not read.
    """

    job: ObservedJob
    pods: tuple[PodView, ...] = ()
    events: tuple[EventGroup, ...] = ()
    last_lines: Mapping[int, tuple[str, ...]] | None = None
    unreadable: tuple[str, ...] = ()

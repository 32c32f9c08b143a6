"""What is said of a status that was written: Events for the job's owner, a line of the log for the operator's."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from muster.api.status.status import Status
from muster.controller.status.events import EventPoster
from muster.objects.kubernetes.resource import Resource

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StatusPublisher:
    """Called with each status after it was written."""

    events: EventPoster

    def __call__(self, resource: Resource, before: Status, after: Status) -> None:
        self.events.tell(resource, before, after)
        # One line for each step of a job's life; what happens within one is in its status.
        if before.phase != after.phase or not before.conditions:
            # A message may quote what users and their programs wrote; a log's line is one line.
            _log.info("%s: %s: %s", resource, after.phase, " ".join(after.message.split()))

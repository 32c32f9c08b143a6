"""Whether this operator, as it is configured, runs a job: the same question as of each job before it starts. Pure."""

from __future__ import annotations

from muster.api.config.operator import OperatorConfig
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.controller.backends import admit, apply_defaults


def check(job: Job, status: Status, config: OperatorConfig) -> None:
    """Raises `InvalidResource` for what the job's namespace may not use, and for pools that don't exist."""
    # What was begun is not given up because less is allowed since.
    if not status.was_started:
        admit(job, config)
    apply_defaults(job, status, config)

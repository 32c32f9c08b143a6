"""Whether this operator, as it is configured, runs a job: the same question as of each job before it starts. Pure."""

from __future__ import annotations

from muster.api.operator_config import OperatorConfig
from muster.api.spec import Job
from muster.api.status import Status
from muster.runtime.cluster.backends import admit, apply_defaults


def check(job: Job, status: Status, config: OperatorConfig) -> None:
    """Raises `InvalidResource` for what the job's namespace may not use, and for pools that don't exist."""
    # What was begun is not given up because less is allowed since.
    if not status.was_started:
        admit(job, config)
    apply_defaults(job, status, config)

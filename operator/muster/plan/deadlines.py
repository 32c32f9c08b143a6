"""The job's deadlines: to be ready, and to be done."""

from muster.api.spec import Job
from muster.plan.facts import JobFacts


def startup_deadline(job: Job, facts: JobFacts) -> float:
    """When all nodes have to be ready, so that the gang starts."""
    return facts.created_at + job.spec.startup_timeout_seconds


def active_deadline(job: Job, facts: JobFacts) -> float | None:
    """When the job has to be done; None: no limit."""
    seconds = job.spec.active_deadline_seconds
    return None if seconds is None else facts.created_at + seconds

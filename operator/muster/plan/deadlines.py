"""The job's deadlines: to be ready, and to be done."""

from muster.api.spec import Job
from muster.api.status import Status
from muster.plan.facts import JobFacts
from muster.plan.nodes import has_started


def gang_has_started(previous: Status, facts: JobFacts) -> bool:
    """Whether the ranks were told to start; a restarted operator knows it from the status it wrote."""
    return previous.start_time is not None or any(has_started(node) for node in facts.nodes)


def startup_deadline(job: Job, previous: Status, facts: JobFacts) -> float | None:
    """When all nodes have to be ready; None once they were."""
    if gang_has_started(previous, facts):
        return None
    return facts.created_at + job.spec.startup_timeout_seconds


def active_deadline(job: Job, facts: JobFacts) -> float | None:
    """When the job has to be done; None: no limit."""
    seconds = job.spec.active_deadline_seconds
    return None if seconds is None else facts.created_at + seconds

"""The job's startup deadline and active deadline."""

from muster.api.spec.job import Job
from muster.core.facts import JobFacts


def startup_deadline(job: Job, facts: JobFacts, began_at: float) -> float | None:
    """When all nodes have to be ready for the gang to start; None while a node is not scheduled.

    Autoscalers take their time, so it counts from the last node's placement. `began_at` is when the job was created or
    last resumed (Unix seconds): nodes without a placement, as of a local run, have their place from then on.
    """
    if not all(node.is_placed for node in facts.nodes):
        return None
    placed = (node.process.scheduled_at for node in facts.nodes)
    return max([began_at, *(at for at in placed if at is not None)]) + job.spec.startup_timeout_seconds


def active_deadline(job: Job, began_at: float) -> float | None:
    """When `activeDeadlineSeconds` expires; None without a limit."""
    seconds = job.spec.active_deadline_seconds
    return None if seconds is None else began_at + seconds

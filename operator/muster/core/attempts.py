"""Which start of its gang a job is at, and since when: what its status tells, held against the facts."""

from muster.api.spec.job import Job
from muster.api.status.status import RESUMED, Status
from muster.api.timestamps import from_text
from muster.core.facts import JobFacts


def newest_attempt(previous: Status, facts: JobFacts) -> int:
    """As `previous.current_attempt`, also for a status that somebody emptied: agents know which start is theirs."""
    agents = tuple(node.current_agent for node in facts.nodes)
    newest = max((agent.report.attempt for agent in agents if agent is not None), default=0)
    return max(previous.current_attempt, newest)


def was_missed(job: Job, previous: Status, facts: JobFacts) -> bool:
    """Whether the job was suspended and resumed while no operator ran: its pods are of a spec before the present one.

    Only a suspended job's spec may change. Pods of another spec alone prove nothing: a release may read it differently.
    """
    return facts.outdated and job.metadata.generation > previous.observed_generation


def began_at(previous: Status, facts: JobFacts, now: float) -> float:
    """When the job was created or, after that, last resumed (Unix seconds): its deadlines count from there."""
    suspension = previous.suspension
    if suspension is None:
        return facts.created_at
    # It is resumed by this very turn.
    if suspension.status == "True":
        return now
    return from_text(suspension.last_transition_time) if suspension.reason == RESUMED else facts.created_at

"""Find the job's current attempt and when it became active, from its status and the observed facts."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import RESUMED, Status
from muster.api.timestamps import parse_or_past, parse_timestamp
from muster.core.facts import JobFacts


@dataclass(frozen=True)
class LastRestart:
    """The restart that the current attempt follows: pods with a lower replacement are from earlier attempts.

    The attempt starts at `not_before` (Unix seconds) at the earliest.
    """

    replacement: int
    not_before: float


def last_restart(previous: Status) -> LastRestart | None:
    """Return the restart before the current attempt; None for an attempt that follows no failure."""
    restarts, record = previous.restarts, previous.last_restart
    if restarts is None or record is None:
        return None
    return LastRestart(restarts.replacement, parse_or_past(restarts.not_before or record.at))


def newest_attempt(previous: Status, facts: JobFacts) -> int:
    """Return the latest attempt in the status or in the agents' reports, in case someone cleared the status."""
    agents = tuple(node.current_agent for node in facts.nodes)
    newest = max((agent.report.attempt for agent in agents if agent is not None), default=0)
    return max(previous.current_attempt, newest)


def was_missed(job: Job, previous: Status, facts: JobFacts) -> bool:
    """Whether the job was suspended and resumed while no operator ran, so that its pods have an older spec.

    Only a suspended job's spec may change. Pods of another spec alone prove nothing: a release may read it differently.
    """
    return facts.has_outdated_pods and job.metadata.generation > previous.observed_generation


def began_at(previous: Status, facts: JobFacts, now: float) -> float:
    """When the job was created or, after that, last resumed (Unix seconds): its deadlines count from there."""
    suspension = previous.suspension
    if suspension is None:
        return facts.created_at
    # This reconciliation resumes the job.
    if suspension.status == "True":
        return now
    return parse_timestamp(suspension.last_transition_time) if suspension.reason == RESUMED else facts.created_at

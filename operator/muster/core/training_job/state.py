"""Complete the facts of a job on SageMaker with its current attempt and its nodes. Pure."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import JobFacts
from muster.core.training_job.attempt_state import AttemptState, find_attempt_state
from muster.core.training_job.facts import TrainingFacts
from muster.core.training_job.nodes import as_job_facts
from muster.core.training_job.problems import with_problems


@dataclass(frozen=True)
class TrainingState:
    """The observed facts, the current attempt, and the nodes in the form of any job."""

    observed: TrainingFacts
    attempt_state: AttemptState
    nodes: JobFacts


def complete_training(job: Job, previous: Status, observed: TrainingFacts, now: float) -> TrainingState:
    """Derive the attempt, the nodes and the problems in this order, at `now` (Unix seconds).

    `previous` is the result of `with_unrecorded_attempt`.
    """
    attempt_state = find_attempt_state(job, previous, observed, now)
    current = None if attempt_state.is_next else observed.training
    nodes = as_job_facts(job, observed, current, attempt_state.attempt)
    return TrainingState(observed, attempt_state, with_problems(nodes, observed, attempt_state))

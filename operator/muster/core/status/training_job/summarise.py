"""Compute the status of a job on SageMaker: the common parts, and its training jobs."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.api.status.status import REFUSED, NodeCounts, Progress, Status
from muster.api.timestamps import to_seconds
from muster.core.facts import ProcessState
from muster.core.judge import Outcome, Verdict
from muster.core.status.after_the_end import after_the_end
from muster.core.status.conditions import conditions, refusal_of
from muster.core.status.progress import MAX_METRICS, progress_of
from muster.core.status.rank_status import rank_status
from muster.core.status.training_job.record import training_record
from muster.core.status.training_job.sentences import training_sentence
from muster.core.status.training_job.unobserved import without_observation
from muster.core.status.views import Picture
from muster.core.training_job.course import sagemaker_status_of
from muster.core.training_job.decide import CreateTrainingJob, TrainingAction
from muster.core.training_job.ends import Sequel
from muster.core.training_job.facts import INTERRUPTED, PENDING, RESTARTING, TrainingFacts, TrainingJob
from muster.core.training_job.state import TrainingState

_ENDS = {
    Verdict.SUSPENDED: "Suspended",
    Verdict.SUCCEEDED: "Succeeded",
    Verdict.FAILED: "Failed",
    Verdict.STOPPED: "Failed",
}

# SageMaker itself restarts it on other instances, or waits for some.
_BEFORE = {PENDING: "Queued", INTERRUPTED: "Restarting", RESTARTING: "Restarting"}


def summarise_training_job(  # noqa: PLR0917 - the results of one reconcile
    job: Job,
    previous: Status,
    state: TrainingState,
    outcome: Outcome,
    actions: Sequence[TrainingAction],
    now: float,
) -> Status:
    """The job's status at `now` (Unix seconds). A job that has ended keeps its status."""
    facts, generation = state.observed, job.metadata.generation
    if previous.final_condition is not None:
        return after_the_end(previous, generation, now)
    # Without observations, keep what was observed before.
    if facts.blind is not None and facts.training is None and sagemaker_status_of(previous) is not None:
        return without_observation(previous, state.nodes.problem, generation, now)
    picture = Picture(job, previous, state.nodes, outcome, now)
    progress = _progress(picture, facts)
    phase = _phase(picture, state)
    message = training_sentence(picture, progress, state)
    creates = any(isinstance(action, CreateTrainingJob) for action in actions)
    return Status(
        observed_generation=generation,
        phase=phase,
        message=message,
        conditions=conditions(picture, phase, message),
        nodes=NodeCounts(desired=job.spec.nodes, ready=_ready(picture)),
        ranks=rank_status(picture),
        progress=progress,
        backend=training_record(picture, state, now if creates else None),
        attempt=state.course.attempt if creates or _is_begun(previous, state) else previous.attempt,
        start_time=_start_time(picture, facts, creates=creates),
        completion_time=to_seconds(now) if phase in ("Succeeded", "Failed") else None,
    )


def _is_begun(previous: Status, state: TrainingState) -> bool:
    return previous.was_started and not state.course.is_next


def _phase(picture: Picture, state: TrainingState) -> str:
    outcome, training = picture.outcome, state.observed.training
    if outcome.is_decided and not outcome.settled:
        return "Stopping"
    if outcome.is_decided:
        return _ENDS[outcome.verdict]
    if refusal_of(picture) is not None and (training is None or state.course.is_next):
        return REFUSED
    # A training job failed, or could not start, and another one will follow.
    if state.course.is_next:
        ended = state.course.ended
        return "Restarting" if ended is not None and ended.sequel is Sequel.RESTART else "Pending"
    if training is None:
        return "Restarting" if state.course.restarts else "Pending"
    return _phase_of(picture, training)


def _phase_of(picture: Picture, training: TrainingJob) -> str:
    # muster is still reading the ranks' reports about its end.
    if training.is_over:
        return picture.previous.phase
    # Someone else stopped it.
    if training.is_asked_to_end:
        return "Stopping"
    if any(node.process.state is ProcessState.RUNNING for node in picture.facts.nodes):
        return "Running"
    return _BEFORE.get(training.secondary_status, "Starting")


def _ready(picture: Picture) -> int:
    nodes = picture.facts.nodes
    running = (node for node in nodes if node.process.state is ProcessState.RUNNING)
    return sum(not picture.facts.is_silent(node, picture.now) for node in running)


def _progress(picture: Picture, facts: TrainingFacts) -> Progress | None:
    """The ranks' reports, and for other metrics the values that SageMaker read from the output."""
    progress = progress_of(picture)
    training = facts.training
    read = {metric.name: metric.value for metric in training.metrics} if training is not None else {}
    if not read:
        return progress
    current = Progress() if progress is None else progress
    names = {**dict.fromkeys(metric.name for metric in picture.job.spec.metrics), **current.metrics, **read}
    values = {name: {**read, **current.metrics}[name] for name in names if name in current.metrics or name in read}
    left_out = len(values) - MAX_METRICS + (current.metrics_left_out or 0)
    return current.model_copy(
        update={
            "metrics": dict(list(values.items())[:MAX_METRICS]),
            "metrics_left_out": left_out if left_out > 0 else None,
        }
    )


def _start_time(picture: Picture, facts: TrainingFacts, *, creates: bool) -> str | None:
    """When the first training job was requested.

    It is written before the request: a job that has it is never started again.
    """
    outcome = picture.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled:
        return None
    if picture.previous.start_time is not None:
        return picture.previous.start_time
    if creates:
        return to_seconds(picture.now)
    # The status of a running job was emptied.
    return None if facts.training is None or not picture.previous.was_started else to_seconds(facts.training.created_at)

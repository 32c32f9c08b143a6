"""Compute the status of a job on SageMaker: the fields that all jobs have, and the record of its training jobs."""

from collections.abc import Sequence

from muster.api.spec.job import Job
from muster.api.status.progress import Progress
from muster.api.status.status import REFUSED, NodeCounts, Status
from muster.api.timestamps import format_timestamp
from muster.core.facts import ProcessState
from muster.core.outcome import Outcome, Verdict
from muster.core.status.conditions import build_conditions, find_refusal_before_start
from muster.core.status.ended_status import build_ended_status
from muster.core.status.hang import build_hang_record
from muster.core.status.progress import MAX_METRICS, build_progress
from muster.core.status.rank_status import build_rank_status
from muster.core.status.training_job.record import build_training_record
from muster.core.status.training_job.sentences import describe_training
from muster.core.status.training_job.unobserved import build_unobserved_status
from muster.core.status.views import StatusInput
from muster.core.training_job.attempt_state import get_sagemaker_status
from muster.core.training_job.decide import CreateTrainingJob, TrainingAction
from muster.core.training_job.ends import NextStep
from muster.core.training_job.facts import INTERRUPTED, PENDING, RESTARTING, TrainingFacts, TrainingJob
from muster.core.training_job.state import TrainingState

_FINAL_PHASES = {
    Verdict.SUSPENDED: "Suspended",
    Verdict.SUCCEEDED: "Succeeded",
    Verdict.FAILED: "Failed",
    Verdict.STOPPED: "Failed",
}

# In these phases SageMaker itself restarts the training job, or waits for instances.
_PHASES = {PENDING: "Queued", INTERRUPTED: "Restarting", RESTARTING: "Restarting"}


def summarise_training_job(  # noqa: PLR0917 - the results of one reconcile
    job: Job,
    previous: Status,
    state: TrainingState,
    outcome: Outcome,
    actions: Sequence[TrainingAction],
    now: float,
) -> Status:
    """Return the job's status at `now` (Unix seconds). A job that has ended keeps its status."""
    facts, generation = state.facts, job.metadata.generation
    if previous.final_condition is not None:
        return build_ended_status(previous, generation, now)
    # muster can't observe the training job, so keep the previous status.
    if facts.observation_failure is not None and facts.training is None and get_sagemaker_status(previous) is not None:
        return build_unobserved_status(previous, state.nodes.problem, generation, now)
    status_input = StatusInput(job, previous, state.nodes, outcome, now)
    progress = _combine_progress(status_input, facts)
    phase = _choose_phase(status_input, state)
    message = describe_training(status_input, progress, state)
    creates = any(isinstance(action, CreateTrainingJob) for action in actions)
    return Status(
        observed_generation=generation,
        phase=phase,
        message=message,
        conditions=build_conditions(status_input, phase, message),
        nodes=NodeCounts(desired=job.spec.nodes, ready=_count_ready_nodes(status_input)),
        ranks=build_rank_status(status_input),
        progress=progress,
        hang=build_hang_record(status_input),
        backend=build_training_record(status_input, state, now if creates else None),
        attempt=state.attempt_state.attempt if creates or _has_started(previous, state) else previous.attempt,
        start_time=_choose_start_time(status_input, facts, creates=creates),
        completion_time=format_timestamp(now) if phase in ("Succeeded", "Failed") else None,
    )


def _has_started(previous: Status, state: TrainingState) -> bool:
    return previous.was_started and not state.attempt_state.is_next


def _choose_phase(status_input: StatusInput, state: TrainingState) -> str:
    outcome, training = status_input.outcome, state.facts.training
    if outcome.is_decided and not outcome.is_idle:
        return "Stopping"
    if outcome.is_decided:
        return _FINAL_PHASES[outcome.verdict]
    if find_refusal_before_start(status_input) is not None and (training is None or state.attempt_state.is_next):
        return REFUSED
    # A training job failed or could not start, and another one follows.
    if state.attempt_state.is_next:
        ended = state.attempt_state.last_failure
        return "Restarting" if ended is not None and ended.next_step is NextStep.RESTART else "Pending"
    if training is None:
        return "Restarting" if state.attempt_state.restarts else "Pending"
    return _choose_training_phase(status_input, training)


def _choose_training_phase(status_input: StatusInput, training: TrainingJob) -> str:
    # muster is still reading how the ranks ended.
    if training.is_over:
        return status_input.previous.phase
    # A user requested the stop, not muster.
    if training.is_ending:
        return "Stopping"
    if any(node.process.state is ProcessState.RUNNING for node in status_input.facts.nodes):
        return "Running"
    return _PHASES.get(training.secondary_status, "Starting")


def _count_ready_nodes(status_input: StatusInput) -> int:
    nodes = status_input.facts.nodes
    running = (node for node in nodes if node.process.state is ProcessState.RUNNING)
    return sum(not status_input.facts.is_silent(node, status_input.now) for node in running)


def _combine_progress(status_input: StatusInput, facts: TrainingFacts) -> Progress | None:
    """Combine the ranks' metrics with those that SageMaker read from the output."""
    progress = build_progress(status_input)
    training = facts.training
    sagemaker_values = {metric.name: metric.value for metric in training.metrics} if training is not None else {}
    if not sagemaker_values:
        return progress
    reported = Progress() if progress is None else progress
    names = {
        **dict.fromkeys(metric.name for metric in status_input.job.spec.metrics),
        **reported.metrics,
        **sagemaker_values,
    }
    values = {
        name: {**sagemaker_values, **reported.metrics}[name]
        for name in names
        if name in reported.metrics or name in sagemaker_values
    }
    left_out = len(values) - MAX_METRICS + (reported.metrics_left_out or 0)
    return reported.model_copy(
        update={
            "metrics": dict(list(values.items())[:MAX_METRICS]),
            "metrics_left_out": left_out if left_out > 0 else None,
        }
    )


def _choose_start_time(status_input: StatusInput, facts: TrainingFacts, *, creates: bool) -> str | None:
    """Return when muster requested the first training job.

    The status has this time before the request, so that no job starts twice.
    """
    outcome = status_input.outcome
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle:
        return None
    if status_input.previous.start_time is not None:
        return status_input.previous.start_time
    if creates:
        return format_timestamp(status_input.now)
    # A user has cleared the status of a running job.
    return (
        None
        if facts.training is None or not status_input.previous.was_started
        else format_timestamp(facts.training.created_at)
    )

"""The status' message of a job on SageMaker: one sentence."""

from muster.api.status.progress import Progress
from muster.core.failure.rank_output import sanitize_line
from muster.core.outcome import DEADLINE_EXCEEDED, Verdict
from muster.core.status.sentences import describe_end, describe_running
from muster.core.status.truncate import truncate_message
from muster.core.status.views import NOT_REPORTED, PENDING, STARTING, StatusInput
from muster.core.training_job.ends import TRAINING_JOB_GONE, NextStep, classify_training_failure
from muster.core.training_job.facts import FAILED, TrainingFacts, TrainingJob
from muster.core.training_job.name import build_training_job_name
from muster.core.training_job.state import TrainingState

MAX_CHARS = 600
"""The maximum length of SageMaker's text in a message, which may contain the end of a container's output."""


def describe_training(status_input: StatusInput, progress: Progress | None, state: TrainingState) -> str:
    """Describe the current state, or how the job ended, in one line that is short enough for the status."""
    if status_input.outcome.verdict is Verdict.SUSPENDED:
        return truncate_message(_describe_suspension(status_input, state.facts))
    if status_input.outcome.is_decided:
        return truncate_message(_describe_training_end(status_input, progress, state.facts))
    return truncate_message(_describe_problem(state) or _describe_progress(status_input, progress, state))


def _describe_problem(state: TrainingState) -> str | None:
    if state.nodes.refusal is not None:
        return state.nodes.refusal.message
    return None if state.nodes.problem is None else _prepend_restart_reason(state, state.nodes.problem.message)


def _describe_progress(status_input: StatusInput, progress: Progress | None, state: TrainingState) -> str:
    if state.attempt_state.is_next and state.attempt_state.last_failure is not None:
        return _prepend_restart_reason(state, "another training job follows")
    if state.facts.training is None or state.attempt_state.is_next:
        return f"Training job {_get_training_job_name(status_input)} is about to be created"
    if any(view.state not in (PENDING, STARTING) and view.reason != NOT_REPORTED for view in status_input.views):
        return describe_running(status_input, progress)
    return _describe_secondary_status(state.facts.training)


def _describe_suspension(status_input: StatusInput, facts: TrainingFacts) -> str:
    if status_input.outcome.is_idle:
        return "Suspended: set spec.suspend to false to start the job again"
    if facts.training is None:
        return "Being suspended; muster may still be creating a training job"
    return f"Being suspended; muster is stopping training job {facts.training.name}"


def _describe_training_end(status_input: StatusInput, progress: Progress | None, facts: TrainingFacts) -> str:
    outcome = status_input.outcome
    has_own_sentence = (
        outcome.failure is not None or outcome.verdict is Verdict.SUCCEEDED or outcome.reason == DEADLINE_EXCEEDED
    )
    if has_own_sentence:
        return describe_end(status_input, progress)
    if outcome.reason == TRAINING_JOB_GONE or facts.training is None:
        return f"Training job {_get_training_job_name(status_input)} was deleted, but not by muster"
    return _describe_training_job_end(facts.training)


def _describe_training_job_end(training: TrainingJob) -> str:
    sentence = sanitize_line(classify_training_failure(training).message, limit=MAX_CHARS)
    return f"Training job {training.name} {'failed' if training.status == FAILED else 'was stopped'}: {sentence}"


def _prepend_restart_reason(state: TrainingState, then: str) -> str:
    """Put the reason for another training job before `then`."""
    before = state.attempt_state.last_failure
    if before is None or before.next_step is not NextStep.RESTART:
        return then
    return (
        f"{sanitize_line(before.message, limit=MAX_CHARS).rstrip('.')}; restart {state.attempt_state.restarts}: {then}"
    )


def _describe_secondary_status(training: TrainingJob) -> str:
    periods = training.history
    message = sanitize_line(periods[-1].message, limit=MAX_CHARS) if periods else ""
    return f"{training.secondary_status}: {message}" if message else f"SageMaker says {training.secondary_status}"


def _get_training_job_name(status_input: StatusInput) -> str:
    return build_training_job_name(status_input.job.metadata, status_input.outcome.attempt)

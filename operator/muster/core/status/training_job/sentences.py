"""The status' message of a job on SageMaker: one sentence."""

from muster.api.status.status import Progress
from muster.core.failure.rank_output import clean
from muster.core.judge import DEADLINE_EXCEEDED, Verdict
from muster.core.status.sentences import ended, fit, running
from muster.core.status.views import NOT_REPORTED, PENDING, STARTING, Picture
from muster.core.training_job.ends import TRAINING_JOB_GONE, Sequel, bad_end
from muster.core.training_job.facts import FAILED, TrainingFacts, TrainingJob
from muster.core.training_job.name import training_job_name
from muster.core.training_job.state import TrainingState

MAX_WORDS = 600
"""The limit of SageMaker's text in a message: it quotes the end of a container's output."""


def training_sentence(picture: Picture, progress: Progress | None, state: TrainingState) -> str:
    """Describe the current state, or how the job ended, in one line that is short enough for the status."""
    if picture.outcome.verdict is Verdict.SUSPENDED:
        return fit(_suspended(picture, state.observed))
    if picture.outcome.is_decided:
        return fit(_ended(picture, progress, state.observed))
    return fit(_problem(state) or _way(picture, progress, state))


def _problem(state: TrainingState) -> str | None:
    if state.nodes.refusal is not None:
        return state.nodes.refusal.message
    return None if state.nodes.problem is None else _with_end(state, state.nodes.problem.message)


def _way(picture: Picture, progress: Progress | None, state: TrainingState) -> str:
    if state.course.is_next and state.course.ended is not None:
        return _with_end(state, "another training job follows")
    if state.observed.training is None or state.course.is_next:
        return f"Training job {_name(picture)} is about to be created"
    if any(view.state not in (PENDING, STARTING) and view.reason != NOT_REPORTED for view in picture.views):
        return running(picture, progress)
    return _standing(state.observed.training)


def _suspended(picture: Picture, facts: TrainingFacts) -> str:
    if picture.outcome.settled:
        return "Suspended: set spec.suspend to false to start the job again"
    if facts.training is None:
        return "Being suspended; muster may still be creating a training job"
    return f"Being suspended; muster is stopping training job {facts.training.name}"


def _ended(picture: Picture, progress: Progress | None, facts: TrainingFacts) -> str:
    outcome = picture.outcome
    own = outcome.failure is not None or outcome.verdict is Verdict.SUCCEEDED or outcome.reason == DEADLINE_EXCEEDED
    if own:
        return ended(picture, progress)
    if outcome.reason == TRAINING_JOB_GONE or facts.training is None:
        return f"Training job {_name(picture)} was deleted, but not by muster"
    return _end(facts.training)


def _end(training: TrainingJob) -> str:
    sentence = clean(bad_end(training).message, limit=MAX_WORDS)
    return f"Training job {training.name} {'failed' if training.status == FAILED else 'was stopped'}: {sentence}"


def _with_end(state: TrainingState, then: str) -> str:
    """Put the reason for another training job before the text about it."""
    before = state.course.ended
    if before is None or before.sequel is not Sequel.RESTART:
        return then
    return f"{clean(before.message, limit=MAX_WORDS).rstrip('.')}; restart {state.course.restarts}: {then}"


def _standing(training: TrainingJob) -> str:
    spans = training.history
    said = clean(spans[-1].message, limit=MAX_WORDS) if spans else ""
    return f"{training.secondary_status}: {said}" if said else f"SageMaker says {training.secondary_status}"


def _name(picture: Picture) -> str:
    return training_job_name(picture.job.metadata, picture.outcome.attempt)

"""The plan of jobs on SageMaker: their own facts and actions, and one outcome as every job has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.status.status import Status
from muster.backends.base import Observation
from muster.core.judge import Outcome
from muster.core.status.training_job.summarise import summarise_training_job
from muster.core.training_job.course import as_found
from muster.core.training_job.decide import TrainingAction, decide_training_job, training_wake
from muster.core.training_job.facts import TrainingFacts
from muster.core.training_job.judge import judge_training_job
from muster.core.training_job.state import TrainingState, complete_training


@dataclass(frozen=True)
class TrainingPlan:
    """It knows no leader's term: no agent gets a command."""

    def complete(self, observed: Observation[TrainingFacts]) -> Observation[TrainingState]:
        """First the record that was removed from the status, then the steps of `complete_training`."""
        job, now = observed.job, observed.now
        previous = as_found(observed.previous, observed.facts)
        return Observation(job, previous, complete_training(job, previous, observed.facts, now), now)

    def judge(self, known: Observation[TrainingState]) -> Outcome:
        """See `core/training_job/judge.py`."""
        return judge_training_job(known.job, known.previous, known.facts, known.now)

    def decide(self, known: Observation[TrainingState], outcome: Outcome) -> tuple[TrainingAction, ...]:
        """See `core/training_job/decide.py`."""
        return decide_training_job(known.job, known.facts, outcome, known.now)

    def summarise(
        self, known: Observation[TrainingState], outcome: Outcome, actions: Sequence[TrainingAction]
    ) -> Status:
        """See `core/status/training_job/summarise.py`."""
        return summarise_training_job(known.job, known.previous, known.facts, outcome, actions, known.now)

    def next_wake(self, known: Observation[TrainingState], outcome: Outcome) -> float | None:
        """See `core/training_job/decide.py`."""
        return training_wake(known.job, known.previous, known.facts, outcome, known.now)

    def is_over(self, _: Observation[TrainingState], outcome: Outcome, actions: Sequence[TrainingAction]) -> bool:
        """Once nothing is left to be done: the finalizer is off, and no training job has to be forgotten."""
        return outcome.is_decided and outcome.settled and not actions

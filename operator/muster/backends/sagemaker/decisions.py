"""The decisions about jobs on SageMaker, from facts and with actions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.status.status import Status
from muster.backends.base import Observation
from muster.core.outcome import Outcome
from muster.core.status.training_job.summarise import summarise_training_job
from muster.core.training_job.attempt_state import add_unrecorded_attempt
from muster.core.training_job.decide import TrainingAction, decide_training_job, find_training_requeue_time
from muster.core.training_job.facts import TrainingFacts
from muster.core.training_job.judge import judge_training_job
from muster.core.training_job.state import TrainingState, derive_training_state


@dataclass(frozen=True)
class TrainingDecisions:
    """The decisions about a training job. They need no leader term, because they send no commands."""

    def derive_facts(self, observation: Observation[TrainingFacts]) -> Observation[TrainingState]:
        """Add an attempt that the status lacks, and apply the steps of `derive_training_state`."""
        job, now = observation.job, observation.now
        previous = add_unrecorded_attempt(observation.previous, observation.facts)
        return Observation(job, previous, derive_training_state(job, previous, observation.facts, now), now)

    def judge(self, observation: Observation[TrainingState]) -> Outcome:
        """See `core/training_job/judge.py`."""
        return judge_training_job(observation.job, observation.previous, observation.facts, observation.now)

    def decide(self, observation: Observation[TrainingState], outcome: Outcome) -> tuple[TrainingAction, ...]:
        """See `core/training_job/decide.py`."""
        return decide_training_job(observation.job, observation.facts, outcome, observation.now)

    def summarise(
        self, observation: Observation[TrainingState], outcome: Outcome, actions: Sequence[TrainingAction]
    ) -> Status:
        """See `core/status/training_job/summarise.py`."""
        return summarise_training_job(
            observation.job, observation.previous, observation.facts, outcome, actions, observation.now
        )

    def find_requeue_time(self, observation: Observation[TrainingState], outcome: Outcome) -> float | None:
        """See `core/training_job/decide.py`."""
        return find_training_requeue_time(
            observation.job, observation.previous, observation.facts, outcome, observation.now
        )

    def is_over(self, _: Observation[TrainingState], outcome: Outcome, actions: Sequence[TrainingAction]) -> bool:
        """Whether the finalizer is removed and no training job has to be deleted."""
        return outcome.is_decided and outcome.is_idle and not actions

"""Classify the end of a training job, and decide whether another training job may follow."""

import re
from dataclasses import dataclass
from enum import StrEnum

from muster.core.training_job import facts as sagemaker
from muster.core.training_job.facts import TrainingJob

INSUFFICIENT_CAPACITY = "InsufficientCapacity"
CLIENT_ERROR = "ClientError"
STOPPED_ELSEWHERE = "StoppedElsewhere"
SPOT_INTERRUPTED = "SpotInterrupted"
TRAINING_JOB_GONE = "TrainingJobGone"
TRAINING_JOB_FAILED = "TrainingJobFailed"

_KIND = re.compile(r"\s*([A-Z][A-Za-z]*(?:Error|Exception))\b")
_CAPACITY = re.compile(r"CapacityError|InsufficientCapacity|insufficient capacity|Unable to provision", re.IGNORECASE)
"""FailureReason begins with the kind: "CapacityError: Unable to provision requested ML compute capacity. ..." """


class NextStep(StrEnum):
    """The decision about another training job after a training job that did not complete."""

    NONE = "None"
    RESTART = "Restart"  # limited by failurePolicy.maxRestarts
    RETRY = "Retry"  # without a limit, because the training never started


@dataclass(frozen=True)
class TrainingFailure:
    """The end of a training job that did not complete.

    `reason` is a CamelCase word, `message` a sentence without a full stop.
    """

    reason: str
    message: str
    next_step: NextStep


def classify_training_failure(training: TrainingJob) -> TrainingFailure:
    """Return why a finished training job has not completed."""
    if training.status == sagemaker.STOPPED:
        return _classify_stop(training)
    message = (training.failure_reason or "SageMaker gives no reason").strip()
    # No instances were available, so no rank has run.
    if _CAPACITY.search(message) and not training.has_trained:
        return TrainingFailure(INSUFFICIENT_CAPACITY, message, NextStep.RETRY)
    kind = _KIND.match(message)
    reason = TRAINING_JOB_FAILED if kind is None else kind.group(1)
    # The request itself is wrong (data, image or permissions), so a restart would fail, too.
    if reason == CLIENT_ERROR:
        return TrainingFailure(reason, message, NextStep.NONE)
    return TrainingFailure(reason, message, NextStep.RESTART)


def _classify_stop(training: TrainingJob) -> TrainingFailure:
    match training.secondary_status:
        # The user's time limit is over.
        case sagemaker.MAX_RUNTIME_EXCEEDED:
            return TrainingFailure(sagemaker.MAX_RUNTIME_EXCEEDED, "it exceeded maxRunSeconds", NextStep.NONE)
        case sagemaker.MAX_WAIT_TIME_EXCEEDED:
            return TrainingFailure(
                sagemaker.MAX_WAIT_TIME_EXCEEDED,
                "it waited for spot instances for longer than maxWaitSeconds",
                NextStep.NONE,
            )
        case sagemaker.INTERRUPTED:
            return TrainingFailure(SPOT_INTERRUPTED, "AWS reclaimed its spot instances", NextStep.RESTART)
        # A user stopped it on purpose.
        case _:
            return TrainingFailure(STOPPED_ELSEWHERE, "something other than muster stopped it", NextStep.NONE)

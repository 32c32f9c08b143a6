"""How a training job ended: as what, and whether another one may follow it."""

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
"""FailureReason begins with its kind: "CapacityError: Unable to provision requested ML compute capacity. ..." """


class Sequel(StrEnum):
    """What follows a training job that did not complete."""

    NONE = "None"
    RESTART = "Restart"  # as failurePolicy.maxRestarts allows
    RETRY = "Retry"  # it never had what it needs: however often


@dataclass(frozen=True)
class BadEnd:
    """`reason` is one CamelCase word, `message` a sentence without a full stop."""

    reason: str
    message: str
    sequel: Sequel


def bad_end(training: TrainingJob) -> BadEnd:
    """Why a training job that is over has not completed."""
    if training.status == sagemaker.STOPPED:
        return _stopped(training)
    value = (training.failure_reason or "SageMaker doesn't say why").strip()
    # Instances were not to be had: nothing of the job has run.
    if _CAPACITY.search(value) and not training.has_trained:
        return BadEnd(INSUFFICIENT_CAPACITY, value, Sequel.RETRY)
    kind = _KIND.match(value)
    reason = TRAINING_JOB_FAILED if kind is None else kind.group(1)
    # What the job asks for is wrong (no such data, image, right), and would be once more.
    if reason == CLIENT_ERROR:
        return BadEnd(reason, value, Sequel.NONE)
    return BadEnd(reason, value, Sequel.RESTART)


def _stopped(training: TrainingJob) -> BadEnd:
    match training.secondary_status:
        # The time that its owner gave it is over.
        case sagemaker.MAX_RUNTIME_EXCEEDED:
            return BadEnd(sagemaker.MAX_RUNTIME_EXCEEDED, "it ran for as long as it may at most", Sequel.NONE)
        case sagemaker.MAX_WAIT_TIME_EXCEEDED:
            return BadEnd(
                sagemaker.MAX_WAIT_TIME_EXCEEDED,
                "spot instances were waited for as long as it may at most",
                Sequel.NONE,
            )
        case sagemaker.INTERRUPTED:
            return BadEnd(SPOT_INTERRUPTED, "its spot instances were taken away", Sequel.RESTART)
        # It was stopped on purpose: do not restart it.
        case _:
            return BadEnd(STOPPED_ELSEWHERE, "it was stopped, but not by muster", Sequel.NONE)

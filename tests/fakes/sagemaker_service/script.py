"""The planned stages of a training job, on the service's clock."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

FOREVER = float("inf")
CAPACITY_ERROR = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type or after some time."
)


@dataclass(frozen=True)
class Stage:
    """A state and its duration in seconds."""

    secondary: str
    seconds: float = FOREVER
    status: str = "InProgress"
    message: str = ""
    failure_reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)


Script = tuple[Stage, ...]

STOPPING = Stage("Stopping", 30.0, status="Stopping", message="Stopping the training job")
STOPPED = Stage("Stopped", status="Stopped", message="Training job stopped")


def make_stages_before_training(seconds: float = 10.0) -> Script:
    """Return the stages before the training, with equal durations."""
    return (
        Stage("Starting", seconds, message="Starting the training job"),
        Stage("Downloading", seconds, message="Downloading input data"),
        Stage("Training", message="Training image download completed. Training in progress."),
    )


def make_completing_script(
    training_seconds: float = 60.0, *, stage_seconds: float = 10.0, loss: float = 0.25
) -> Script:
    starting, downloading, training = make_stages_before_training(stage_seconds)
    return (
        starting,
        downloading,
        replace(training, seconds=training_seconds),
        Stage("Uploading", stage_seconds, message="Uploading generated training model"),
        Stage("Completed", status="Completed", message="Training job completed", metrics={"loss": loss}),
    )


def make_failing_script(reason: str, training_seconds: float = 60.0, *, stage_seconds: float = 10.0) -> Script:
    starting, downloading, training = make_stages_before_training(stage_seconds)
    return (
        starting,
        downloading,
        replace(training, seconds=training_seconds),
        Stage("Failed", status="Failed", message="Training job failed", failure_reason=reason),
    )


def draw_training(draw: random.Random) -> Script:
    """Return a training that succeeds, with random durations. Some stages are shorter than the poller's interval."""
    return (
        Stage("Starting", draw.uniform(20, 120)),
        Stage("Downloading", draw.uniform(1, 30)),
        Stage("Training", draw.uniform(30, 240)),
        Stage("Uploading", draw.uniform(1, 15)),
        Stage("Completed", status="Completed", metrics={"loss": 0.1}),
    )


def make_no_capacity_script(seconds: float = 30.0) -> Script:
    return (
        Stage("Starting", seconds, message="Starting the training job"),
        Stage("Failed", status="Failed", message="Training job failed", failure_reason=CAPACITY_ERROR),
    )


@dataclass
class Course:
    """The past and future states of one job, with their start times."""

    stages: list[tuple[datetime, Stage]]

    @classmethod
    def start(cls, script: Script, at: datetime) -> Course:
        course = cls([])
        course.turn(script, at)
        return course

    def turn(self, script: Script, at: datetime) -> None:
        """Replace the future states."""
        self.stages = [entry for entry in self.stages if entry[0] < at]
        for stage in script:
            self.stages.append((at, stage))
            if stage.seconds == FOREVER:
                break
            at += timedelta(seconds=stage.seconds)

    def list_states(self, now: datetime) -> list[tuple[datetime, Stage]]:
        """Return the states so far."""
        return [entry for entry in self.stages if entry[0] <= now]

    def get_state(self, now: datetime) -> tuple[datetime, Stage]:
        """Return the current state, and its start time."""
        return self.list_states(now)[-1]

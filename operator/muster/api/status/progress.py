"""The part of the status about the job's progress."""

from pydantic import Field

from muster.api.spec.model import Model


class Progress(Model):
    """The job's progress."""

    step: int | None = Field(
        default=None,
        description="The number of optimizer steps that every running rank has completed; unset before the first step.",
    )
    steps_per_second: float | None = Field(
        default=None, description="The number of optimizer steps per second, over the last steps."
    )
    percent: int | None = Field(
        default=None,
        description="How much of the training is done, in percent; 100 once the job is Complete. Unset if muster does "
        "not know the total.",
        ge=0,
        le=100,
    )
    estimated_remaining_seconds: int | None = Field(
        default=None,
        description="How long the training still takes from the time `at` on, at its mean speed. Unset if muster does "
        "not know the total or the speed, and while the ranks don't run.",
        ge=0,
    )
    slowest_rank: int | None = Field(default=None, description="The rank with the fewest steps.")
    metrics: dict[str, float] = Field(
        default_factory=dict,
        description="The latest values of at most 64 metrics: first the metrics of spec.metrics, then others by name.",
    )
    metrics_left_out: int | None = Field(
        default=None, description="The number of metrics that are not listed; unset if all are listed."
    )
    at: str | None = Field(
        default=None,
        description="The time when the ranks completed the step, or reported the progress (RFC 3339).",
    )

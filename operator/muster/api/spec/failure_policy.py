"""What is done about failures, as types."""

from pydantic import Field

from muster.api.spec.model import Model

MAX_RESTARTS = 1000


class FailurePolicy(Model):
    """How a job that failed is started again."""

    max_restarts: int = Field(
        default=0,
        description="How often a job that failed by itself is started again, from its checkpoint: as another training "
        "job. Instances that SageMaker does not have are asked for as often as needed.",
        ge=0,
        le=MAX_RESTARTS,
    )

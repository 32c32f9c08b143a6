"""`spec.failurePolicy` as a type: what muster does when a job fails."""

from pydantic import Field

from muster.api.spec.model import Model

MAX_RESTARTS = 1000


class FailurePolicy(Model):
    """How muster restarts a failed job."""

    max_restarts: int = Field(
        default=0,
        description="How often muster restarts a job that failed by itself, from its checkpoint: as another training "
        "job. Requests for instances that SageMaker does not have at the moment do not count.",
        ge=0,
        le=MAX_RESTARTS,
    )

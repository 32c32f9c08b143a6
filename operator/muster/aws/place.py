"""Where a job of SageMaker is, and as whom muster asks there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Place:
    """A region as seen by a role. `assume_role_arn` "": as whoever the operator itself is."""

    region: str
    assume_role_arn: str = ""

    def __str__(self) -> str:
        return f"{self.region} as {self.assume_role_arn}" if self.assume_role_arn else self.region


@dataclass(frozen=True)
class Endpoints:
    """URLs to ask instead of AWS's own, by service; None: AWS's, or what $AWS_ENDPOINT_URL_... says (boto3)."""

    sagemaker: str | None = None
    s3: str | None = None
    sts: str | None = None
    logs: str | None = None

"""The region of a SageMaker job, and the role with which muster accesses it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class AwsAccess:
    """A region, and the role with which muster sends requests to it. `assume_role_arn` "": the operator's own role.

    `external_id` identifies the namespace for which muster assumes the role. Each external id has its own credentials.
    """

    region: str
    assume_role_arn: str = ""
    external_id: str = ""

    def __str__(self) -> str:
        if not self.assume_role_arn:
            return self.region
        external_id_text = f" (external id {self.external_id})" if self.external_id else ""
        return f"{self.region} as {self.assume_role_arn}{external_id_text}"

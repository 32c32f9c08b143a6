"""Where a job of SageMaker is, and as whom muster asks there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Place:
    """A region as seen by a role. `assume_role_arn` "": as the operator itself.

    `external_id` says on whose behalf the role is assumed. It is a part of the place: what one was let in for is no
    other's to use.
    """

    region: str
    assume_role_arn: str = ""
    external_id: str = ""

    def __str__(self) -> str:
        if not self.assume_role_arn:
            return self.region
        on_behalf = f" (external id {self.external_id})" if self.external_id else ""
        return f"{self.region} as {self.assume_role_arn}{on_behalf}"

"""A job translated from a launch script, and the user's AWS options. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments
from muster.importers.sagemaker.translate.entry_point import LocalCode


@dataclass(frozen=True)
class TranslatedJob:
    """A job translated from a launch script. `name` is the job's name in the script, or "".

    `code` is None if the image has the code.
    """

    name: str
    spec: Mapping[str, JSON]
    code: Mapping[str, JSON] | LocalCode | None


@dataclass(frozen=True)
class AccountOptions:
    """The options --aws-region, --aws-account and --role of `muster import`. An option is None if it is unset."""

    region: str | None
    account: str | None
    role: str | None

    def find_role_arn(self, arguments: Arguments) -> str | None:
        """Return the ARN of the script's role. A name without slashes means a role without a path."""
        role = arguments.take_text("role") or self.role
        if role is None:
            arguments.problems.add(arguments.describe_argument("role"), "is missing: set --role ARN")
            return None
        if "/" in role:
            return role
        if self.account is None:
            arguments.problems.add(
                arguments.describe_argument("role"),
                f"found the name {role}: set --aws-account NUMBER, or write its ARN",
            )
            return None
        arn = f"arn:{_find_partition(self.region or '')}:iam::{self.account}:role/{role}"
        arguments.problems.warn(
            arguments.describe_argument("role"), f"muster uses {arn} for {role}; if the role has a path, write its ARN"
        )
        return arn


def _find_partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

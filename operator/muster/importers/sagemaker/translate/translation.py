"""What a run of a script becomes, and what its translation needs to know of the account. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.sagemaker.translate.entry import Folder
from muster.importers.sagemaker.translate.reading import Arguments


@dataclass(frozen=True)
class Translated:
    """A job's spec, but for code that still lies on this machine; `name` is what the script calls the job, or ""."""

    name: str
    spec: Mapping[str, JSON]
    code: Mapping[str, JSON] | Folder | None


@dataclass(frozen=True)
class Place:
    """Where the job is to run, as far as `muster import` was told."""

    region: str | None
    account: str | None
    role: str | None

    def role_arn(self, arguments: Arguments) -> str | None:
        """The role that the script names, by its ARN; one that only has a name is taken for one without a path."""
        role = arguments.text("role") or self.role
        if role is None:
            arguments.problems.add(arguments.where("role"), "is missing: give --role ARN")
            return None
        if "/" in role:
            return role
        if self.account is None:
            arguments.problems.add(
                arguments.where("role"), f"found the name {role}: give --aws-account NUMBER, or its ARN"
            )
            return None
        arn = f"arn:{_partition(self.region or '')}:iam::{self.account}:role/{role}"
        arguments.problems.warn(arguments.where("role"), f"{role} is taken for {arn}; if it has a path, give its ARN")
        return arn


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

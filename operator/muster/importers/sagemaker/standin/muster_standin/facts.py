"""The account's facts from the options of `muster import`."""

from __future__ import annotations

from dataclasses import dataclass

from .refused import NotGiven


@dataclass(frozen=True)
class Facts:
    """Region, account and role; None for each that the user did not set."""

    region: str | None
    account: str | None
    role: str | None

    def need_region(self, what: str) -> str:
        """The region. Raises `NotGiven` with the name of the call that needs it."""
        return _needed(self.region, what, "the region", "--aws-region REGION")

    def need_account(self, what: str) -> str:
        """The account's number. Raises `NotGiven`."""
        return _needed(self.account, what, "the account", "--aws-account NUMBER")

    def need_role(self, what: str) -> str:
        """The execution role's ARN. Raises `NotGiven`."""
        return _needed(self.role, what, "the job's role", "--role ARN")


def _needed(value: str | None, what: str, name: str, option: str) -> str:
    if value is None:
        raise NotGiven(f"{what} needs {name}: set {option}")
    return value


def partition(region: str) -> str:
    """The AWS partition of a region, as in ARNs."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

"""The AWS options of `muster import`."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import MissingOption


@dataclass(frozen=True)
class AccountOptions:
    """Region, account and role; None if the user did not set the option."""

    region: str | None
    account: str | None
    role: str | None

    def need_region(self, what: str) -> str:
        """Return the region. Raises `MissingOption` with the name of the call that needs it."""
        return _require(self.region, what, "the region", "--aws-region REGION")

    def need_account(self, what: str) -> str:
        """Return the account's number. Raises `MissingOption`."""
        return _require(self.account, what, "the account", "--aws-account NUMBER")

    def need_role(self, what: str) -> str:
        """Return the execution role's ARN. Raises `MissingOption`."""
        return _require(self.role, what, "the job's role", "--role ARN")


def _require(value: str | None, what: str, name: str, option: str) -> str:
    if value is None:
        raise MissingOption(f"{what} needs {name}: set {option}")
    return value


def partition(region: str) -> str:
    """Return the AWS partition of a region, as in ARNs."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

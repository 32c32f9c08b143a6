"""The AWS options of `muster import`."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import MissingOption


@dataclass(frozen=True)
class AccountOptions:
    """Region, account and role; an option is None if the user did not set it."""

    region: str | None
    account: str | None
    role: str | None

    def require_region(self, caller: str) -> str:
        """Return the region. Raises `MissingOption` with the name of the caller if the region is unset."""
        return _require_option(self.region, caller, "the region", "--aws-region REGION")

    def require_account(self, caller: str) -> str:
        """Return the account's number. Raises `MissingOption` if it is unset."""
        return _require_option(self.account, caller, "the account", "--aws-account NUMBER")

    def require_role(self, caller: str) -> str:
        """Return the execution role's ARN. Raises `MissingOption` if it is unset."""
        return _require_option(self.role, caller, "the job's role", "--role ARN")


def _require_option(value: str | None, caller: str, name: str, option: str) -> str:
    if value is None:
        raise MissingOption(f"{caller} needs {name}: set {option}")
    return value


def find_partition(region: str) -> str:
    """Return the AWS partition of a region, as in ARNs."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

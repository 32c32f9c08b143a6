"""What `muster import` was told of the account that the script is for."""

from __future__ import annotations

from dataclasses import dataclass

from .refused import NotGiven


@dataclass(frozen=True)
class Facts:
    """Region, account and role, each None when it wasn't given."""

    region: str | None
    account: str | None
    role: str | None

    def need_region(self, what: str) -> str:
        """The region. Raises `NotGiven` that says what asks for it."""
        return _needed(self.region, what, "the region", "--aws-region REGION")

    def need_account(self, what: str) -> str:
        """The account's number. Raises `NotGiven`."""
        return _needed(self.account, what, "the account", "--aws-account NUMBER")

    def need_role(self, what: str) -> str:
        """The execution role's ARN. Raises `NotGiven`."""
        return _needed(self.role, what, "the role that the job is to have", "--role ARN")


def _needed(value: str | None, what: str, name: str, option: str) -> str:
    if value is None:
        raise NotGiven(f"{what} asks for {name}: give it with {option}")
    return value


def partition(region: str) -> str:
    """The part of AWS that a region belongs to, as ARNs name it."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"

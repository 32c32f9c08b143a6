"""IAM role ARNs."""

_ACCOUNT_FIELD = 4
"""The account's index in arn:partition:service:region:account:resource."""


def account_of(role_arn: str) -> str:
    """The account of a role, and so of its training jobs: a role can't be passed to another account."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

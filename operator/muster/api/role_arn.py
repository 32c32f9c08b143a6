"""IAM role ARNs."""

_ACCOUNT_FIELD = 4
"""The account's index in arn:partition:service:region:account:resource."""


def account_of(role_arn: str) -> str:
    """Return a role's account. Its training jobs run in it, because SageMaker accepts no role of another account."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

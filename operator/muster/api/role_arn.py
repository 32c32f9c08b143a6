"""IAM role ARNs."""

_ACCOUNT_FIELD = 4
"""The account's index in arn:partition:service:region:account:resource."""


def account_of(role_arn: str) -> str:
    """Return the account of a role. Its training jobs run there: SageMaker accepts no role of another account."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

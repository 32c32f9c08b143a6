"""IAM roles by their ARNs."""

_ACCOUNT_FIELD = 4
"""Of an ARN: arn:partition:service:region:account:resource."""


def account_of(role_arn: str) -> str:
    """The account of a role, in which its training jobs are: IAM lets no role be passed into another account."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

"""IAM role ARNs."""

_ACCOUNT_FIELD = 4
"""The account's index in arn:partition:service:region:account:resource."""


def parse_account_id(role_arn: str) -> str:
    """Return the id of the role's AWS account, in which SageMaker runs the role's training jobs."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

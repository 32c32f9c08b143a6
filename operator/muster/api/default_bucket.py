"""Where a training job's output and code lie when the job doesn't say it."""

_ACCOUNT_FIELD = 4
"""Of an ARN: arn:partition:service:region:account:resource."""


def default_bucket(region: str, account: str) -> str:
    """The bucket that the SageMaker SDK takes (session.py, default_bucket): one for all who use the account."""
    return f"sagemaker-{region}-{account}"


def account_of(role_arn: str) -> str:
    """The account of a role, in which its training jobs are: IAM lets no role be passed into another account."""
    return role_arn.split(":")[_ACCOUNT_FIELD]

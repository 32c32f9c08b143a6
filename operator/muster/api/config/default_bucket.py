"""Where a training job's output and code lie when the job doesn't say it."""


def default_bucket(region: str, account: str) -> str:
    """The bucket that the SageMaker SDK takes (session.py, default_bucket): one for all who use the account."""
    return f"sagemaker-{region}-{account}"

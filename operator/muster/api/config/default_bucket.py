"""The default bucket for a training job's output and code."""


def default_bucket(region: str, account: str) -> str:
    """The bucket that the SageMaker SDK uses by default (session.py, default_bucket): one for an account and region."""
    return f"sagemaker-{region}-{account}"

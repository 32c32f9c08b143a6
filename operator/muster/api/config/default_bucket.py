"""The default bucket for the output and the code of training jobs."""


def build_default_bucket_name(region: str, account: str) -> str:
    """Return the SageMaker SDK's default bucket for an account and region (session.py, default_bucket)."""
    return f"sagemaker-{region}-{account}"

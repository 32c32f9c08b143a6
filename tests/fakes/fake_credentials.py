"""Fake AWS credentials, instead of those in the environment and the home folder."""

import pytest

FAKE_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "example-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}

_ABSENT = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION")


def use_fake_credentials(patch: pytest.MonkeyPatch) -> None:
    """This process' environment with only these credentials."""
    for name, value in FAKE_VARIABLES.items():
        patch.setenv(name, value)
    for name in _ABSENT:
        patch.delenv(name, raising=False)

"""Create botocore sessions with credentials. Only botocore reads the credentials, this module doesn't."""

from __future__ import annotations

import logging
from functools import cache, partial

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from muster.objects.aws.access import AwsAccess

SESSION_NAME = "muster"
"""The name of muster's role sessions, which CloudTrail shows."""

# At DEBUG these libraries log whole requests, with credentials.
_VERBOSE_LIBRARIES = ("boto3", "botocore", "s3transfer", "urllib3")


def create_session(aws_access: AwsAccess, sts_url: str | None, config: Config) -> Session:
    """Create a session with the permissions of `aws_access`.

    botocore loads the operator's own credentials: environment, profile, IRSA, Pod Identity, instance role. If
    `aws_access` has a role, botocore assumes it at the first request, and again before its credentials expire.
    """
    for name in _VERBOSE_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    base = _create_base_session(aws_access.region)
    if not aws_access.assume_role_arn:
        return base
    session = _create_base_session(aws_access.region)
    provider = _AssumedRoleProvider(base, aws_access, sts_url, config)
    session.register_component("credential_provider", CredentialResolver([provider]))
    return session


@cache
def _get_loader() -> Loader:
    """Return botocore's loader of service descriptions (its `data_loader`).

    All sessions share it, because SageMaker's description takes a second to load.
    """
    return create_loader()


def _create_base_session(region: str) -> Session:
    session = Session()
    session.register_component("data_loader", _get_loader())
    session.set_config_variable("region", region)
    return session


class _AssumedRoleProvider(CredentialProvider):
    METHOD = "assume-role"

    def __init__(self, base: Session, aws_access: AwsAccess, sts_url: str | None, config: Config) -> None:
        super().__init__()
        self._base = base
        self._role_arn = aws_access.assume_role_arn
        self._extra_args = {
            "RoleSessionName": SESSION_NAME,
            **({"ExternalId": aws_access.external_id} if aws_access.external_id else {}),
        }
        self._new_client = partial(
            base.create_client, region_name=aws_access.region, endpoint_url=sts_url, config=config
        )

    def load(self) -> Credentials:
        credentials = self._base.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(
            self._new_client, credentials, self._role_arn, extra_args=self._extra_args
        )
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method=self.METHOD)

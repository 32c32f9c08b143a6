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

from muster.objects.aws.place import Place

SESSION_NAME = "muster"
"""The name of muster's role sessions, which CloudTrail shows."""

# At DEBUG these libraries log whole requests, with credentials.
_VERBOSE_LIBRARIES = ("boto3", "botocore", "s3transfer", "urllib3")


def create_session(place: Place, sts_url: str | None, config: Config) -> Session:
    """Create a session with the permissions of `place`.

    botocore loads the operator's own credentials: environment, profile, IRSA, Pod Identity, instance role. If `place`
    has a role, botocore assumes it at the first request, and again before its credentials expire.
    """
    for name in _VERBOSE_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    base = _create_base_session(place.region)
    if not place.assume_role_arn:
        return base
    session = _create_base_session(place.region)
    provider = _AssumedRoleProvider(base, place, sts_url, config)
    session.register_component("credential_provider", CredentialResolver([provider]))
    return session


@cache
def _get_loader() -> Loader:
    """Return the loader of the services' models, which all places share: SageMaker's model takes a second to load."""
    return create_loader()


def _create_base_session(region: str) -> Session:
    session = Session()
    session.register_component("data_loader", _get_loader())
    session.set_config_variable("region", region)
    return session


class _AssumedRoleProvider(CredentialProvider):
    METHOD = "assume-role"

    def __init__(self, base: Session, place: Place, sts_url: str | None, config: Config) -> None:
        super().__init__()
        self._base = base
        self._role_arn = place.assume_role_arn
        self._extra_args = {
            "RoleSessionName": SESSION_NAME,
            **({"ExternalId": place.external_id} if place.external_id else {}),
        }
        self._new_client = partial(base.create_client, region_name=place.region, endpoint_url=sts_url, config=config)

    def load(self) -> Credentials:
        credentials = self._base.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(
            self._new_client, credentials, self._role_arn, extra_args=self._extra_args
        )
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method=self.METHOD)

"""Whose rights a request is sent with. Credentials stay inside botocore: nothing here reads, keeps or shows them."""

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
"""By which CloudTrail tells what muster did with a role from what others did."""

# At DEBUG they write whole requests, and with them what proves who asks.
_TALKATIVE = ("boto3", "botocore", "s3transfer", "urllib3")


def new_session(place: Place, sts_url: str | None, config: Config) -> Session:
    """A session that asks as `place` says.

    The default chain is botocore's: environment, profile, IRSA, Pod Identity, the machine's role. A role is assumed
    when the first request needs it, and again before that expires.
    """
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    own = _session_in(place.region)
    if not place.assume_role_arn:
        return own
    assumed = _session_in(place.region)
    provider = _AssumedRole(own, place, sts_url, config)
    assumed.register_component("credential_provider", CredentialResolver([provider]))
    return assumed


@cache
def _loader() -> Loader:
    """The services' models: SageMaker's takes the better part of a second to read, once for all places."""
    return create_loader()


def _session_in(region: str) -> Session:
    session = Session()
    session.register_component("data_loader", _loader())
    session.set_config_variable("region", region)
    return session


class _AssumedRole(CredentialProvider):
    METHOD = "assume-role"

    def __init__(self, own: Session, place: Place, sts_url: str | None, config: Config) -> None:
        super().__init__()
        self._own = own
        self._role_arn = place.assume_role_arn
        self._told = {
            "RoleSessionName": SESSION_NAME,
            **({"ExternalId": place.external_id} if place.external_id else {}),
        }
        self._new_client = partial(own.create_client, region_name=place.region, endpoint_url=sts_url, config=config)

    def load(self) -> Credentials:
        source = self._own.get_credentials()
        if source is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(self._new_client, source, self._role_arn, extra_args=self._told)
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method=self.METHOD)

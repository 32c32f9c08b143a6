"""Manage the collector's certificates, which all replicas share in a Secret, and the cluster's keys for tokens."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.clients.kubernetes.client import Client
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.collector.trust.authorities import (
    SERVING_SECONDS,
    choose_signing_authority,
    decode_authorities,
    encode_authorities,
    is_renewal_due,
    make_ca_bundle,
    rotate_authorities,
)
from muster.collector.trust.certificate import Authority, ServingCertificate, make_authority, sign_certificate
from muster.collector.trust.keys import Keys, read_keys
from muster.collector.trust.tokens import TokenVerifier
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SECRETS, Object
from muster_worker.contract.schema import TOKEN_AUDIENCE

RENEWAL_CHECK_SECONDS = 3600.0
"""The interval of certificate checks: short enough that each replica reads a new authority before its first use."""

KEY_REFRESH_SECONDS = 300.0
"""The interval at which the cluster's keys are read: a revoked key is accepted at most this long."""

MIN_KEY_REFRESH_SECONDS = 10.0
"""The minimum interval: a token with an unknown key triggers a read, and any client can send such a token."""

MAX_ATTEMPTS = 10
"""The maximum number of attempts to update the Secret, while other replicas update it."""

_AUTHORITIES_KEY = "authorities.json"
_SEED_KEY = "gang-seed"
_DISCOVERY_PATH = "/.well-known/openid-configuration"
_KEYS_PATH = "/openid/v1/jwks"

_log = logging.getLogger(__name__)


class TrustError(Exception):
    """The cluster's Secret or keys can't be used; the message says what to do."""


@dataclass(frozen=True)
class TrustSettings:
    """The name of the Secret, and the collector's host names and addresses for agents."""

    namespace: str
    secret: str
    hosts: Sequence[str]


@dataclass(frozen=True)
class _SecretContent:
    """The Secret's content: the collector's authorities, and the seed of the agents' credentials (b"" without one)."""

    authorities: tuple[Authority, ...] = ()
    seed: bytes = field(default=b"", repr=False)


@dataclass
class TrustManager:
    """Keeps the collector's certificates and the cluster's keys up to date while `run` runs.

    `on_renewal` is called with each new serving certificate. `clock` returns Unix seconds. Call `start` first.
    """

    client: Client
    settings: TrustSettings
    on_renewal: Callable[[ServingCertificate], None]
    clock: Callable[[], float]
    verifier: TokenVerifier = field(init=False)
    _content: _SecretContent = _SecretContent()
    _certificate: ServingCertificate = field(init=False)
    _signer: Authority = field(init=False)
    _signed_at: float = 0.0
    _unknown_key: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        """Read or create the Secret, and read the cluster's keys. Raises `ApiError` and `TrustError`."""
        self._content = await self._sync_secret()
        self._sign_certificate()
        issuer = _read_issuer(await self.client.read(_DISCOVERY_PATH))
        self.verifier = TokenVerifier(issuer, TOKEN_AUDIENCE, await self._read_keys(), self._unknown_key.set)

    def get_ca_bundle(self) -> str:
        """Return the CA certificates for agents' plans, as PEM."""
        return make_ca_bundle(self._content.authorities)

    def get_seed(self) -> bytes:
        """Return the seed of the agents' credentials, which all replicas share."""
        return self._content.seed

    def get_certificate(self) -> ServingCertificate:
        """Return the collector's current certificate."""
        return self._certificate

    async def run(self) -> None:
        """Renew certificates and keys, until cancelled. After an error, the current ones stay in use."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_repeatedly())
            tasks.create_task(self._refresh_keys())

    async def renew_if_due(self) -> None:
        """Rotate the authorities and sign a new certificate, if necessary. Raises `ApiError` and `TrustError`."""
        self._content = await self._sync_secret()
        now = self.clock()
        is_expiring = is_renewal_due(
            self._signed_at, min(self._signed_at + SERVING_SECONDS, self._signer.expires_at), now
        )
        if is_expiring or choose_signing_authority(self._content.authorities, now) != self._signer:
            self._sign_certificate()
            self.on_renewal(self._certificate)

    async def _renew_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_CHECK_SECONDS)
            try:
                await self.renew_if_due()
            except (ApiError, TrustError) as error:
                _log.warning("the collector's certificates could not be checked: %s", error)

    async def _refresh_keys(self) -> None:
        while True:
            # an unknown key may trigger an earlier read, but only after this delay
            await asyncio.sleep(MIN_KEY_REFRESH_SECONDS)
            try:
                async with asyncio.timeout(KEY_REFRESH_SECONDS - MIN_KEY_REFRESH_SECONDS):
                    await self._unknown_key.wait()
            except TimeoutError:
                pass
            self._unknown_key.clear()
            try:
                self.verifier.replace_keys(await self._read_keys())
            except (ApiError, TrustError) as error:
                _log.warning("the cluster's keys for tokens could not be read: %s", error)

    def _sign_certificate(self) -> None:
        now = self.clock()
        authority = choose_signing_authority(self._content.authorities, now)
        self._certificate = sign_certificate(authority, self.settings.hosts, now, SERVING_SECONDS)
        self._signer, self._signed_at = authority, now

    async def _sync_secret(self) -> _SecretContent:
        """Read the shared Secret, and rotate its authorities if necessary.

        After a conflict with another replica, it reads the Secret again.
        """
        for _ in range(MAX_ATTEMPTS):
            secret = await self._read()
            # if the Secret was deleted, write its content again: agents still trust its authorities
            current = self._content if secret is None else self._read_secret(secret)
            # a Secret of an earlier release has no seed
            seed = current.seed or self._content.seed or secrets.token_bytes(SEED_BYTES)
            new_content = _SecretContent(rotate_authorities(current.authorities, self.clock(), make_authority), seed)
            if secret is not None and new_content == current:
                return current
            try:
                await self._write(secret, new_content)
            except ApiError as error:
                # another client has changed or deleted the Secret: read it again
                if not (error.already_exists or error.is_conflict or error.is_not_found):
                    raise
                continue
            return new_content
        raise TrustError(f"Secret {self._name} changed {MAX_ATTEMPTS} times during updates")

    async def _read_keys(self) -> Keys:
        try:
            return read_keys(await self.client.read(_KEYS_PATH))
        except ValueError as error:
            raise TrustError(f"the API server's {_KEYS_PATH}: {error}") from None

    async def _read(self) -> Object | None:
        try:
            return await self.client.get(SECRETS, self.settings.namespace, self.settings.secret)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def _write(self, secret: Object | None, content: _SecretContent) -> None:
        namespace, name = self.settings.namespace, self.settings.secret
        entries: dict[str, JSON] = {
            _AUTHORITIES_KEY: _encode(encode_authorities(content.authorities).encode()),
            _SEED_KEY: _encode(content.seed),
        }
        if secret is None:
            body: Object = {
                "apiVersion": SECRETS.api_version,
                "kind": SECRETS.name,
                "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "muster"}},
                "data": entries,
            }
            await self.client.create(SECRETS, namespace, body)
            return
        data = secret.get("data")
        other_entries = data if isinstance(data, dict) else {}
        # the resourceVersion makes this fail with a conflict after another replica's update
        await self.client.replace(SECRETS, namespace, name, {**secret, "data": {**other_entries, **entries}})

    def _read_secret(self, secret: Object) -> _SecretContent:
        authorities, seed = (self._read_entry(secret, key) for key in (_AUTHORITIES_KEY, _SEED_KEY))
        if seed is not None and len(seed) != SEED_BYTES:
            raise self._make_error(_SEED_KEY, f"it has {len(seed)} bytes, not {SEED_BYTES}")
        try:
            current = () if authorities is None else decode_authorities(authorities.decode())
        except ValueError as error:
            raise self._make_error(_AUTHORITIES_KEY, _describe_safely(error)) from None
        return _SecretContent(current, seed or b"")

    def _read_entry(self, secret: Object, key: str) -> bytes | None:
        """Return an entry of the Secret; None if the Secret doesn't have it."""
        data = secret.get("data")
        encoded = data.get(key) if isinstance(data, dict) else None
        if encoded is None:
            return None
        try:
            return base64.b64decode(str(encoded), validate=True)
        except ValueError as error:
            raise self._make_error(key, _describe_safely(error)) from None

    def _make_error(self, key: str, reason: str) -> TrustError:
        return TrustError(f"Secret {self._name}: {key}: {reason}; delete the Secret: muster creates a new one")

    @property
    def _name(self) -> str:
        return f"{self.settings.namespace}/{self.settings.secret}"


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _describe_safely(error: ValueError) -> str:
    # the decoders' messages may quote the secret
    return "it is not UTF-8 text in base64" if isinstance(error, UnicodeError | binascii.Error) else str(error)


def _read_issuer(text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    issuer = document.get("issuer") if isinstance(document, dict) else None
    if not isinstance(issuer, str):
        raise TrustError(f"the API server's {_DISCOVERY_PATH} has no issuer")
    return issuer

"""Whom agents trust, and whose tokens the collector believes: a Secret shared by all replicas, the cluster's keys."""

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
from muster.collector.trust.authorities import SERVING_SECONDS, bundle, from_text, is_due, rotate, signer, to_text
from muster.collector.trust.certificate import Authority, ServingCertificate, make_authority, sign
from muster.collector.trust.keys import Keys, read_keys
from muster.collector.trust.rank_group_credentials import SEED_BYTES
from muster.collector.trust.tokens import Verifier
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SECRETS, Object
from muster_worker.contract.schema import TOKEN_AUDIENCE

RENEWAL_SECONDS = 3600.0
"""Between two looks at the certificates. Another replica's new authority is known here long before it signs."""

KEYS_SECONDS = 300.0
"""Between two looks at the cluster's keys: a key that was taken back is believed no longer than this."""

UNKNOWN_KEY_SECONDS = 10.0
"""A token of an unknown key makes muster look at once, but no more often: anybody can make such a token."""

ATTEMPTS = 10
"""So often the Secret is read again because another replica has written it meanwhile."""

_DATA_KEY = "authorities.json"
_SEED_KEY = "gang-seed"
_DISCOVERY = "/.well-known/openid-configuration"
_KEYS = "/openid/v1/jwks"

_log = logging.getLogger(__name__)


class NoTrust(Exception):
    """What the cluster holds can't be used; the message says what to do."""


@dataclass(frozen=True)
class TrustSetting:
    """The Secret, and the names and addresses that agents find the collector under."""

    namespace: str
    secret: str
    hosts: Sequence[str]


@dataclass(frozen=True)
class _Held:
    """What the Secret has: the collector's authorities, and what the gangs' credentials are derived from (or b"")."""

    authorities: tuple[Authority, ...] = ()
    seed: bytes = field(default=b"", repr=False)


@dataclass
class Trust:
    """Keeps certificates and keys current for as long as `run` runs.

    `renewed` gets each new serving certificate; `clock` gives Unix seconds. Call `start` before all else.
    """

    client: Client
    setting: TrustSetting
    renewed: Callable[[ServingCertificate], None]
    clock: Callable[[], float]
    verifier: Verifier = field(init=False)
    _held: _Held = _Held()
    _serving: ServingCertificate = field(init=False)
    _signed_by: Authority = field(init=False)
    _signed_at: float = 0.0
    _unknown_key: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        """Read or make all of it. Raises `ApiError` and `NoTrust`."""
        self._held = await self._agree()
        self._sign()
        issuer = _issuer(await self.client.read(_DISCOVERY))
        self.verifier = Verifier(issuer, TOKEN_AUDIENCE, await self._read_keys(), self._unknown_key.set)

    def bundle(self) -> str:
        """The certificates that agents trust, PEM: what goes into plans."""
        return bundle(self._held.authorities)

    def seed(self) -> bytes:
        """What the credentials of gangs are derived from: the same for every replica, as long as the Secret lives."""
        return self._held.seed

    def certificate(self) -> ServingCertificate:
        """What the collector shows at this moment."""
        return self._serving

    async def run(self) -> None:
        """Renew and look again, for ever. Problem is logged, and what is known stays good meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_always())
            tasks.create_task(self._follow_keys())

    async def renew(self) -> None:
        """One look at the authorities, and a new serving certificate if it's time. Raises `ApiError`, `NoTrust`."""
        self._held = await self._agree()
        now = self.clock()
        outlived = is_due(self._signed_at, min(self._signed_at + SERVING_SECONDS, self._signed_by.expires_at), now)
        if outlived or signer(self._held.authorities, now) != self._signed_by:
            self._sign()
            self.renewed(self._serving)

    async def _renew_always(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                await self.renew()
            except (ApiError, NoTrust) as error:
                _log.warning("the collector's certificates were not looked at: %s", error)

    async def _follow_keys(self) -> None:
        while True:
            # the sooner look is one of a quick series at most: the pause holds for it as well
            await asyncio.sleep(UNKNOWN_KEY_SECONDS)
            try:
                async with asyncio.timeout(KEYS_SECONDS - UNKNOWN_KEY_SECONDS):
                    await self._unknown_key.wait()
            except TimeoutError:
                pass
            self._unknown_key.clear()
            try:
                self.verifier.replace_keys(await self._read_keys())
            except (ApiError, NoTrust) as error:
                _log.warning("the cluster's keys for tokens were not read: %s", error)

    def _sign(self) -> None:
        now = self.clock()
        authority = signer(self._held.authorities, now)
        self._serving = sign(authority, self.setting.hosts, now, SERVING_SECONDS)
        self._signed_by, self._signed_at = authority, now

    async def _agree(self) -> _Held:
        """What all replicas have, rotated if need be: who writes second reads what the first one wrote."""
        for _ in range(ATTEMPTS):
            result = await self._read()
            # a Secret that was deleted under us comes back: agents trust what they were told
            current = self._held if result is None else self._read_secret(result)
            # one of an earlier release has no seed, and may have come back without ours
            seed = current.seed or self._held.seed or secrets.token_bytes(SEED_BYTES)
            wanted = _Held(rotate(current.authorities, self.clock(), make_authority), seed)
            if result is not None and wanted == current:
                return current
            try:
                await self._write(result, wanted)
            except ApiError as error:
                # deleted meanwhile is as good a reason to look again as changed
                if not (error.already_exists or error.is_conflict or error.is_not_found):
                    raise
                continue
            return wanted
        raise NoTrust(f"Secret {self._name} was changed by others {ATTEMPTS} times while it was written")

    async def _read_keys(self) -> Keys:
        try:
            return read_keys(await self.client.read(_KEYS))
        except ValueError as error:
            raise NoTrust(f"the API server's {_KEYS}: {error}") from None

    async def _read(self) -> Object | None:
        try:
            return await self.client.get(SECRETS, self.setting.namespace, self.setting.secret)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def _write(self, stored: Object | None, held: _Held) -> None:
        namespace, name = self.setting.namespace, self.setting.secret
        written: dict[str, JSON] = {
            _DATA_KEY: _encoded(to_text(held.authorities).encode()),
            _SEED_KEY: _encoded(held.seed),
        }
        if stored is None:
            body: Object = {
                "apiVersion": SECRETS.api_version,
                "kind": SECRETS.name,
                "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "muster"}},
                "data": written,
            }
            await self.client.create(SECRETS, namespace, body)
            return
        data = stored.get("data")
        kept = data if isinstance(data, dict) else {}
        # its resourceVersion goes along: an update of another replica in between makes this one a conflict
        await self.client.replace(SECRETS, namespace, name, {**stored, "data": {**kept, **written}})

    def _read_secret(self, secret: Object) -> _Held:
        authorities, seed = (self._entry(secret, key) for key in (_DATA_KEY, _SEED_KEY))
        if seed is not None and len(seed) != SEED_BYTES:
            raise self._unusable(_SEED_KEY, f"it has {len(seed)} bytes, not {SEED_BYTES}")
        try:
            current = () if authorities is None else from_text(authorities.decode())
        except ValueError as error:
            raise self._unusable(_DATA_KEY, _safe(error)) from None
        return _Held(current, seed or b"")

    def _entry(self, secret: Object, key: str) -> bytes | None:
        """An entry of the Secret; None for one that nobody has filled yet."""
        data = secret.get("data")
        encoded = data.get(key) if isinstance(data, dict) else None
        if encoded is None:
            return None
        try:
            return base64.b64decode(str(encoded), validate=True)
        except ValueError as error:
            raise self._unusable(key, _safe(error)) from None

    def _unusable(self, key: str, why: str) -> NoTrust:
        return NoTrust(f"Secret {self._name}: {key}: {why}; delete the Secret, and muster makes a new one")

    @property
    def _name(self) -> str:
        return f"{self.setting.namespace}/{self.setting.secret}"


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _safe(error: ValueError) -> str:
    # the decoders' own messages may quote what they choke on
    return "it is not UTF-8 text in base64" if isinstance(error, UnicodeError | binascii.Error) else str(error)


def _issuer(text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    issuer = document.get("issuer") if isinstance(document, dict) else None
    if not isinstance(issuer, str):
        raise NoTrust(f"the API server's {_DISCOVERY} names no issuer of tokens")
    return issuer

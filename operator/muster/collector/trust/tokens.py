"""Verify the tokens with which pods authenticate. The agents of a local run use tokens with the same claims.

A projected Kubernetes service account token contains its pod's name. The issuer's public keys verify it, without a
request to the API server.
"""

import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.trust.keys import Keys

MAX_TOKEN_CHARS = 8192
"""The maximum length of a token. Kubernetes' projected tokens have about 1,200 characters."""

LEEWAY_SECONDS = 60.0
"""The tolerated difference between the clocks of the issuer and this process."""

MAX_CACHED_TOKENS = 20_000
"""The maximum number of cached tokens: enough for two tokens of each pod of the largest job."""

MAX_CACHED_TOKENS_PER_POD = 2
"""The maximum number of cached tokens of a pod: the current token, and the one before its rotation."""

_OPTIONS: Any = {
    "require": ["exp", "aud", "iss"],
    # this module checks the times, with the caller's clock
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


@dataclass(frozen=True)
class PodClaim:
    """The pod for which a token was issued."""

    namespace: str
    pod_name: str
    pod_uid: str


@dataclass(frozen=True)
class _VerifiedToken:
    claim: PodClaim
    kid: str
    valid_from: float
    expires_at: float


class TokenVerifier:
    """Verifies tokens. It caches valid tokens, so that a heartbeat needs no signature check.

    `on_unknown_key` is called for each token whose key is not in `keys`: the issuer may have a new key.
    """

    def __init__(
        self, issuer: str, audience: str, keys: Keys, on_unknown_key: Callable[[], None] = lambda: None
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._on_unknown_key = on_unknown_key
        self._verified_tokens: OrderedDict[bytes, _VerifiedToken] = OrderedDict()
        self._tokens_by_pod: dict[str, list[bytes]] = {}

    def replace_keys(self, keys: Keys) -> None:
        """Use the issuer's new keys; tokens signed with other keys are no longer valid."""
        unchanged = {kid for kid, key in keys.items() if kid in self._keys and self._keys[kid].key == key.key}
        self._keys = keys
        for token in [token for token, entry in self._verified_tokens.items() if entry.kid not in unchanged]:
            self._drop_cached(token)

    def find_cached_claim(self, token: str, now: float) -> PodClaim | None:
        """Return the claim of a valid token in the cache, without a signature check; None if there is none."""
        fingerprint = _hash_token(token)
        verified_token = self._verified_tokens.get(fingerprint)
        if verified_token is None or not verified_token.valid_from <= now < verified_token.expires_at:
            return None
        self._verified_tokens.move_to_end(fingerprint)
        return verified_token.claim

    def verify(self, token: str, now: float) -> PodClaim:
        """Return the claim of `token` at `now` (Unix seconds).

        Raises `RequestRefused`: BadToken, Expired or WrongAudience.
        """
        claim = self.find_cached_claim(token, now)
        if claim is not None:
            return claim
        verified_token = self._verify(token)
        if not verified_token.valid_from <= now < verified_token.expires_at:
            raise RequestRefused(RefusalReason.EXPIRED)
        self._cache(_hash_token(token), verified_token)
        return verified_token.claim

    def _cache(self, token: bytes, verified_token: _VerifiedToken) -> None:
        # an expired token may still be cached
        if token in self._verified_tokens:
            self._drop_cached(token)
        self._verified_tokens[token] = verified_token
        pod_tokens = self._tokens_by_pod.setdefault(verified_token.claim.pod_uid, [])
        pod_tokens.append(token)
        if len(pod_tokens) > MAX_CACHED_TOKENS_PER_POD:
            self._drop_cached(pod_tokens[0])
        if len(self._verified_tokens) > MAX_CACHED_TOKENS:
            self._drop_cached(next(iter(self._verified_tokens)))

    def _drop_cached(self, token: bytes) -> None:
        pod_uid = self._verified_tokens.pop(token).claim.pod_uid
        pod_tokens = self._tokens_by_pod[pod_uid]
        pod_tokens.remove(token)
        if not pod_tokens:
            del self._tokens_by_pod[pod_uid]

    def _verify(self, token: str) -> _VerifiedToken:
        kid, algorithm = self._choose_key(token)
        key = self._keys[kid]
        try:
            claims = jwt.decode(
                token, key.key, algorithms=[algorithm], audience=self._audience, issuer=self._issuer, options=_OPTIONS
            )
        except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError) as error:
            is_wrong_audience = isinstance(error, jwt.InvalidAudienceError) or error.claim == "aud"
            raise RequestRefused(
                RefusalReason.WRONG_AUDIENCE if is_wrong_audience else RefusalReason.BAD_TOKEN
            ) from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise RequestRefused(RefusalReason.BAD_TOKEN) from None
        return _VerifiedToken(_read_claim(claims), kid, *_read_period(claims))

    def _choose_key(self, token: str) -> tuple[str, str]:
        # check the size and the header before the signature, which costs more
        if len(token) > MAX_TOKEN_CHARS:
            raise RequestRefused(RefusalReason.BAD_TOKEN)
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise RequestRefused(RefusalReason.BAD_TOKEN) from None
        kid, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(kid, str) or not isinstance(algorithm, str) or "crit" in header:
            raise RequestRefused(RefusalReason.BAD_TOKEN)
        key = self._keys.get(kid)
        if key is None:
            self._on_unknown_key()
            raise RequestRefused(RefusalReason.BAD_TOKEN)
        # the key determines the algorithms, so that "none" and HMAC with a public key are refused
        if algorithm not in key.algorithms:
            raise RequestRefused(RefusalReason.BAD_TOKEN)
        return kid, algorithm


class LocalTokenIssuer:
    """Issues the tokens of a local run, with a key that exists only in this process."""

    def __init__(self, issuer: str, audience: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._kid = uuid.uuid4().hex

    def make_jwks(self) -> str:
        """Return the public key as a JWKS document, for `read_keys`."""
        key = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**key, "kid": self._kid, "use": "sig", "alg": "ES256"}]})

    def issue(self, pod: PodClaim, now: float, lifetime_seconds: float) -> str:
        """Issue a token for `pod`, from `now` (Unix seconds), with the claims of a Kubernetes projected token."""
        claims = {
            "iss": self._issuer,
            "sub": f"system:serviceaccount:{pod.namespace}:default",
            "aud": [self._audience],
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now + lifetime_seconds),
            "kubernetes.io": {
                "namespace": pod.namespace,
                "pod": {"name": pod.pod_name, "uid": pod.pod_uid},
                "serviceaccount": {"name": "default", "uid": self._kid},
            },
        }
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": self._kid})


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _read_claim(claims: dict[str, Any]) -> PodClaim:
    kubernetes_claims = claims.get("kubernetes.io")
    pod = kubernetes_claims.get("pod") if isinstance(kubernetes_claims, dict) else None
    # the token must be bound to a pod
    if not isinstance(kubernetes_claims, dict) or not isinstance(pod, dict):
        raise RequestRefused(RefusalReason.BAD_TOKEN)
    namespace, name, uid = kubernetes_claims.get("namespace"), pod.get("name"), pod.get("uid")
    if not (isinstance(namespace, str) and isinstance(name, str) and isinstance(uid, str) and uid):
        raise RequestRefused(RefusalReason.BAD_TOKEN)
    return PodClaim(namespace, name, uid)


def _read_period(claims: dict[str, Any]) -> tuple[float, float]:
    return _read_unix_seconds(claims.get("nbf", 0)) - LEEWAY_SECONDS, _read_unix_seconds(
        claims.get("exp")
    ) + LEEWAY_SECONDS


def _read_unix_seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestRefused(RefusalReason.BAD_TOKEN)
    return float(value)

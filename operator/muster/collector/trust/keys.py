"""Read the public keys that sign pods' tokens from a JWKS document, as OIDC issuers publish it."""

from collections.abc import Mapping
from types import MappingProxyType

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

MIN_RSA_BITS = 2048

PublicKey = EllipticCurvePublicKey | RSAPublicKey


class VerifyingKey:
    """A public key with its allowed algorithms. A token's header can't choose another algorithm."""

    def __init__(self, key: PublicKey) -> None:
        """Raises `ValueError` for a key that must not sign tokens."""
        self.key = key
        self.algorithms = _get_algorithms(key)


Keys = Mapping[str, VerifyingKey]
"""The keys by key id (`kid`)."""


def read_keys(jwks: str) -> Keys:
    """Read the signing keys of a JWKS document; skip keys for other uses and of unsupported types.

    Raises `ValueError` if it is not a JWKS document.
    """
    try:
        parsed = jwt.PyJWKSet.from_json(jwks).keys
    except (jwt.PyJWTError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"not a JWKS document: {error}") from None
    keys: dict[str, VerifyingKey] = {}
    for parsed_key in parsed:
        key = parsed_key.key
        if parsed_key.key_id is None or parsed_key.public_key_use not in (None, "sig"):
            continue
        if isinstance(key, EllipticCurvePublicKey | RSAPublicKey) and _is_strong(key):
            keys[parsed_key.key_id] = VerifyingKey(key)
    return MappingProxyType(keys)


def _is_strong(key: PublicKey) -> bool:
    return not isinstance(key, RSAPublicKey) or key.key_size >= MIN_RSA_BITS


_ALGORITHMS_BY_CURVE = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}


def _get_algorithms(key: PublicKey) -> tuple[str, ...]:
    if isinstance(key, RSAPublicKey):
        return ("RS256", "RS384", "RS512")
    algorithms = _ALGORITHMS_BY_CURVE.get(key.curve.name)
    if algorithms is None:
        raise ValueError(f"{key.curve.name}: not a curve for signing tokens")
    return algorithms

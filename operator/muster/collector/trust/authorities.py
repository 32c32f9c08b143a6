"""Rotate the collector's certificate authorities: choose those that agents trust, and the one that signs. Pure.

Agents trust the authorities in their job's plan, and a changed plan reaches a running pod minutes later. So agents
trust a new authority before it signs, and an old authority until it expires.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from muster.collector.trust.certificate import Authority, check_authority

AUTHORITY_SECONDS = 360 * 24 * 3600.0
"""An authority's lifetime. After two thirds of it, muster creates the next authority."""

SERVING_SECONDS = 30 * 24 * 3600.0
"""A serving certificate's lifetime."""

RENEWAL_FRACTION = 2.0 / 3.0
"""The fraction of a certificate's lifetime after which muster issues the next one. The rest is for retries."""

PROPAGATION_SECONDS = 24 * 3600.0
"""A new authority signs only after this time. By then, all agents trust it."""

_FIELDS = {"certificate": str, "key": str, "madeAt": float, "expiresAt": float}


def rotate_authorities(
    authorities: Sequence[Authority], now: float, make: Callable[[float, float], Authority]
) -> tuple[Authority, ...]:
    """Return the authorities for `now` (Unix seconds), oldest first.

    `make(start, lifetime)` creates an authority. It is called when the newest authority needs a successor.
    """
    current = sorted((authority for authority in authorities if now < authority.expires_at), key=_get_age_key)
    if not current or is_renewal_due(current[-1].made_at, current[-1].expires_at, now):
        current.append(make(now, AUTHORITY_SECONDS))
    return tuple(current)


def is_renewal_due(made_at: float, expires_at: float, now: float) -> bool:
    """Whether a certificate needs a successor now."""
    return now >= made_at + RENEWAL_FRACTION * (expires_at - made_at)


def choose_signing_authority(authorities: Sequence[Authority], now: float) -> Authority:
    """Return the authority that signs at `now`: the newest that agents trust. `authorities` come from `rotate`."""
    trusted = [authority for authority in authorities if now >= authority.made_at + PROPAGATION_SECONDS]
    # without an older authority, waiting would not help
    return trusted[-1] if trusted else authorities[0]


def make_ca_bundle(authorities: Sequence[Authority]) -> str:
    """Return the certificates that agents trust, as PEM, newest last."""
    return "".join(authority.certificate for authority in authorities)


def encode_authorities(authorities: Sequence[Authority]) -> str:
    """Encode the authorities with their keys as JSON, for `decode_authorities`. The result is secret."""
    entries = [
        {
            "certificate": authority.certificate,
            "key": authority.key,
            "madeAt": authority.made_at,
            "expiresAt": authority.expires_at,
        }
        for authority in authorities
    ]
    return json.dumps({"authorities": entries})


def decode_authorities(text: str) -> tuple[Authority, ...]:
    """Decode the result of `encode_authorities`. Raises `ValueError`, whose message contains no part of a key."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        # the exception contains the text, which is secret
        raise ValueError("it is not JSON") from None
    entries = document.get("authorities") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError('it is not {"authorities": [...]}')
    return tuple(sorted((_read_authority(entry, index) for index, entry in enumerate(entries)), key=_get_age_key))


def _read_authority(entry: object, index: int) -> Authority:
    if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
        raise ValueError(f"authorities[{index}]: expected {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if type(entry[name]) is not kind:
            raise ValueError(f"authorities[{index}].{name}: expected {kind.__name__}")
    authority = Authority(entry["certificate"], entry["key"], entry["madeAt"], entry["expiresAt"])
    try:
        check_authority(authority)
    except (ValueError, TypeError):
        raise ValueError(f"authorities[{index}]: certificate and key are not a pair in PEM") from None
    return authority


def _get_age_key(authority: Authority) -> tuple[float, str]:
    # the order is defined even for equal times
    return authority.made_at, authority.certificate

"""Validate a user's token for a git host. Pure."""

from __future__ import annotations

from muster.render.storage.errors import GIT_TOKEN_MISSING, StorageError

GIT_TOKEN_VARIABLE = "MUSTER_GIT_TOKEN"  # noqa: S105 - a name, not a token
"""The environment variable with the token, for the container that fetches the commit and for `muster run`."""

MAX_CHARS = 8192


def parse_token(text: bytes, field: str) -> str:
    """Return the token without a trailing newline. Raises `StorageError`; its message never repeats the token."""
    try:
        token = text.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or len(token) > MAX_CHARS or not token.isprintable() or " " in token:
        message = "the value is not a token: one line of letters, digits and symbols is expected"
        raise StorageError(GIT_TOKEN_MISSING, f"{field}: {message}")
    return token

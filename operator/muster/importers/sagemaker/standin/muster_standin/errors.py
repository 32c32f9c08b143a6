"""Errors for operations that `muster import` does not support."""

from __future__ import annotations

RAISED: list[Unsupported] = []
"""All errors raised so far: even if the script catches one, a job is missing."""


class Unsupported(Exception):
    """A job's file can't express the script's operation. The message has the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        RAISED.append(self)


class MissingOption(ValueError):
    """The script needs an AWS option that the user did not set.

    The SDK raises ValueError if there is no role, and scripts catch it.
    """


class Forbidden(PermissionError):
    """The script, or one of its libraries, tried to open a connection or start a program.

    A PermissionError is an OSError, like a network failure, so libraries with a fallback continue.
    """

"""Errors for operations that `muster import` does not support."""

from __future__ import annotations

RAISED_ERRORS: list[UnsupportedOperation] = []
"""All errors raised so far. Even if the script catches an error, a job is missing."""


class UnsupportedOperation(Exception):
    """The script uses an operation that a job's file can't express. The message has the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        RAISED_ERRORS.append(self)


class MissingOption(ValueError):
    """The script needs an AWS option that the user did not set.

    This is a ValueError like the SDK's error for a missing role, because scripts catch ValueError.
    """


class ForbiddenOperation(PermissionError):
    """The script, or one of its libraries, tried to open a connection or start a program.

    This is an OSError like a network failure, so libraries with a fallback continue.
    """

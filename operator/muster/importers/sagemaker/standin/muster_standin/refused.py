"""Errors for what a launch script can't do under `muster import`."""

from __future__ import annotations

RAISED: list[Refused] = []
"""All refusals so far: a script that catches one has still lost a job."""


class Refused(Exception):
    """The script does something that a job's file can't express; the message says what, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        RAISED.append(self)


class NotGiven(ValueError):
    """The user did not set a fact of the account.

    A ValueError, as the SDK's without a role: scripts catch it and try something else.
    """


class NotAllowed(PermissionError):
    """The script, or one of its libraries, wants to open a connection or start a program.

    An OSError, as on a machine without network: libraries with a fallback continue.
    """

"""What a launch script can't do under `muster import`."""

from __future__ import annotations

RAISED: list[Refused] = []
"""All refusals so far: a script that catches one has lost a job all the same."""


class Refused(Exception):
    """The script asks for something that has no place in a job's file; the message says what, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        RAISED.append(self)


class NotGiven(ValueError):
    """A fact of the account that muster doesn't know.

    The SDK raises ValueError where it finds no role, and scripts have something else to try then.
    """


class NotAllowed(PermissionError):
    """The script, or a library of its, wants to reach a network or to start a program.

    An OSError, as from a machine that lacks both: libraries that can do without go on.
    """

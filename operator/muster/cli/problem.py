"""What a command says when it can't do what was asked."""

from __future__ import annotations


def system_problem(error: OSError) -> str:
    """What the system refused, as `name: reason` when it said the name."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


class BadInput(Exception):
    """The user gave something that muster can't work with: shown without a stack trace, exit code 2."""

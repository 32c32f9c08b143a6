"""Errors of commands."""

from __future__ import annotations


def system_problem(error: OSError) -> str:
    """Format a system error as `name: reason` if it has a file name."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


class BadInput(Exception):
    """The user's input is invalid: shown without a stack trace, exit code 2."""

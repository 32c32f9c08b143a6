"""The errors of commands."""

from __future__ import annotations


def format_os_error(error: OSError) -> str:
    """Format a system error as `file: reason`, or as `reason` if it has no file name."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


class BadInput(Exception):
    """The user's input is invalid. The command shows no stack trace and exits with 2."""

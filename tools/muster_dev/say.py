"""Messages of `make setup`: one short line each, flushed at once."""

from __future__ import annotations


class SetupError(Exception):
    """The set-up can't continue; the message says why and what to do."""


def say(text: str) -> None:
    """Print a line about the current step."""
    print(f"setup: {text}", flush=True)

"""Messages of `make setup`."""

from __future__ import annotations


class SetupError(Exception):
    """The set-up can't continue. The message has the reason and the solution."""


def print_step(text: str) -> None:
    """Print a line about the current step, and flush the output."""
    print(f"setup: {text}", flush=True)

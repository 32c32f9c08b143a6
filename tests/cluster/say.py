"""Messages to the user who started the cluster."""

import sys


class CannotGoOn(Exception):
    """The problem and its solution, in sentences for the user."""


def say(text: str) -> None:
    """Print one line about the current step, at once, also through a pipe."""
    sys.stdout.write(f"cluster: {text}\n")
    sys.stdout.flush()

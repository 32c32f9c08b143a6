"""Talking to the person who started the cluster."""

import sys


class CannotGoOn(Exception):
    """What is missing or went wrong, and what to do about it, in sentences for a person."""


def say(text: str) -> None:
    """Print one line about what happens now, at once, also through a pipe."""
    sys.stdout.write(f"cluster: {text}\n")
    sys.stdout.flush()

"""Talking to the person who called make: short lines, at once, also through a pipe."""

from __future__ import annotations


class GiveUp(Exception):
    """The set-up can't go on; the message says why and what to do."""


def say(text: str) -> None:
    """Print one line about what happens now."""
    print(f"setup: {text}", flush=True)

"""What a command says when it can't do what was asked."""

from __future__ import annotations


class BadInput(Exception):
    """The user gave something that muster can't work with: shown without a stack trace, exit code 2."""

"""Read the bytes that `-f` names: from a file, or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from muster.api.yaml.load import MAX_TEXT_BYTES

_STDIN = "-"


def source_name(file: str) -> str:
    """The source's name in messages."""
    return "standard input" if file == _STDIN else file


def read_source(file: str) -> bytes:
    """Read at most one byte more than allowed: enough to refuse a file that is too large. Raises `OSError`."""
    if file == _STDIN:
        return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_TEXT_BYTES + 1)

"""The bytes that `-f` names: a file's, or standard input's."""

from __future__ import annotations

import sys
from pathlib import Path

from muster.api.yaml.load import MAX_TEXT_BYTES

_STDIN = "-"


def source_name(file: str) -> str:
    """How messages call it."""
    return "standard input" if file == _STDIN else file


def read_source(file: str) -> bytes:
    """Its content, of which one byte more than allowed is enough to refuse it, however long it is. Raises `OSError`."""
    if file == _STDIN:
        return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_TEXT_BYTES + 1)

"""Read the file of the option `-f`, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from muster.api.yaml.load import MAX_TEXT_BYTES

_STDIN = "-"


def get_source_name(file: str) -> str:
    """Return the name of the file for messages."""
    return "standard input" if file == _STDIN else file


def read_source(file: str) -> bytes:
    """Read the file, up to one byte more than the limit, so that `load_documents` can reject it. Raises `OSError`."""
    if file == _STDIN:
        return sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_TEXT_BYTES + 1)

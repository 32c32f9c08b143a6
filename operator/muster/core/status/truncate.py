"""Truncate messages to the maximum length in a status."""

from muster.core.failure import rank_output

MAX_BYTES = 1024
"""The maximum length of a message in UTF-8, because it is a column in `kubectl get` and a line in events."""


def truncate_message(text: str) -> str:
    """Make `text` one printable line that is short enough for the status."""
    line = rank_output.sanitize_line(text, limit=MAX_BYTES)
    if len(line.encode()) <= MAX_BYTES:
        return line
    start = line.encode()[: MAX_BYTES - len("…".encode())]
    return f"{start.decode(errors='ignore').rstrip()}…"

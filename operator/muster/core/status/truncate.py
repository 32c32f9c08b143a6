"""Truncate messages to the length that a status may have."""

from muster.core.failure import rank_output

MAX_BYTES = 1024
"""The longest message, in UTF-8: it is a column in `kubectl get` and a line in events."""


def truncate_message(text: str) -> str:
    """Make `text` one clean line that is short enough for the status."""
    line = rank_output.clean(text, limit=MAX_BYTES)
    if len(line.encode()) <= MAX_BYTES:
        return line
    kept = line.encode()[: MAX_BYTES - len("…".encode())]
    return f"{kept.decode(errors='ignore').rstrip()}…"

"""Processes of a test, found among all of the machine by a mark in their environment, whatever their parent."""

import time
from pathlib import Path


def marked(mark: str) -> dict[int, str]:
    """The living processes with `mark` in their environment: command lines by pid."""
    result = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                result[int(entry.name)] = command.decode("utf-8", "replace")
        except OSError:
            continue  # it ended while we looked, or is a zombie
    return result


def left_after(mark: str, seconds: float = 5.0) -> list[str]:
    """Command lines of what is still there after `seconds`; returns as soon as nothing is."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(left.values())

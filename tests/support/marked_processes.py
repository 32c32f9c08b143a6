"""Finds a test's processes on the machine by a mark in their environment, with any parent."""

import time
from pathlib import Path


def marked(mark: str) -> dict[int, str]:
    """Living processes with `mark` in their environment: command lines by pid."""
    result = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                result[int(entry.name)] = command.decode("utf-8", "replace")
        except OSError:
            continue  # it has ended in the meantime, or is a zombie
    return result


def left_after(mark: str, seconds: float = 20.0) -> list[str]:
    """Command lines of the processes that still run after `seconds`; returns at once when there are none."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(left.values())

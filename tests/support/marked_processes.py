"""Finds a test's processes on the machine by a mark in their environment, with any parent."""

import time
from pathlib import Path


def find_marked_processes(mark: str) -> dict[int, str]:
    """Return the command lines of running processes with `mark` in their environment, by pid."""
    result = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                result[int(entry.name)] = command.decode("utf-8", "replace")
        except OSError:
            continue  # the process has ended meanwhile, or is a zombie
    return result


def wait_for_exit(mark: str, seconds: float = 20.0) -> list[str]:
    """Wait until no process has the mark. Return the command lines of the processes that still run after `seconds`."""
    deadline = time.monotonic() + seconds
    while (remaining := find_marked_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(remaining.values())

"""A process and everything it started, as Linux lists it; and the end of all of that."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> tuple[int, ...]:
    """The process ids below `pid`, children before grandchildren. Processes that end meanwhile are left out."""
    result = list(_children(pid))
    for child in result:
        result.extend(_children(child))  # the loop goes on over what it adds
    return tuple(result)


def kill_tree(pid: int) -> None:
    """SIGKILL `pid` and everything below it, so that nothing it started survives.

    `pid` is stopped first and killed last: orphans of the others become its children (it is a subreaper) and are found
    in the next round.
    """
    _send(pid, signal.SIGSTOP)
    killed: set[int] = set()
    while below := set(descendants(pid)) - killed:
        for process in below:
            _send(process, signal.SIGKILL)
        killed |= below
    _send(pid, signal.SIGKILL)


def kill_marked(mark: bytes) -> None:
    """SIGKILL every process of this user that has `mark` in its environment, until none is left.

    Who started it may be gone: this finds what no tree of ours has any more.
    """
    killed: set[int] = set()
    while result := set(_marked(mark)) - killed:
        for process in result:
            _send(process, signal.SIGKILL)
        killed |= result


def _marked(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it ended meanwhile, or is another user's
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)


def _children(pid: int) -> tuple[int, ...]:
    children: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        for task in tasks:
            children.extend(int(text) for text in (task / "children").read_text().split())
    except OSError:
        return tuple(children)
    return tuple(children)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or another user's by now (`sudo`): nothing that we do ends it

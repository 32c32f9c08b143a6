"""Find a process and its descendants in /proc, and kill them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def list_descendants(pid: int) -> tuple[int, ...]:
    """Return the ids of all descendants of `pid`, children before grandchildren. Skips processes that end meanwhile."""
    result = list(_list_children(pid))
    for child in result:
        result.extend(_list_children(child))  # the loop also visits the added ones
    return tuple(result)


def kill_tree(pid: int) -> None:
    """Send SIGKILL to `pid` and all its descendants.

    `pid` is a subreaper: orphaned descendants become its children, where the next round finds them. So stop it first,
    and kill it last.
    """
    _send(pid, signal.SIGSTOP)
    killed: set[int] = set()
    while remaining := set(list_descendants(pid)) - killed:
        for process in remaining:
            _send(process, signal.SIGKILL)
        killed |= remaining
    _send(pid, signal.SIGKILL)


def kill_marked(mark: bytes) -> None:
    """Send SIGKILL to every process of this user with `mark` in its environment, until none is left.

    This also finds processes whose parents have ended.
    """
    killed: set[int] = set()
    while remaining := set(_list_processes_with(mark)) - killed:
        for process in remaining:
            _send(process, signal.SIGKILL)
        killed |= remaining


def _list_processes_with(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended, or belongs to another user
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)


def _list_children(pid: int) -> tuple[int, ...]:
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
        return  # it has ended, or changed its user (`sudo`)

"""The fork server's spares: pairs of processes that were forked before a request needs them.

A fork copies the page tables of all imported libraries, which takes 10 to 20 ms. A rank needs two forks: its parent and
itself. The fork server forks a few pairs while nothing else starts, so that a restart waits for none of them.

The agent must distinguish a spare from a process that an attempt has left behind. So both processes of a spare have the
name `NAME` until they get a request. They drop it before they check whether the wrapper of their request still runs.
"""

from __future__ import annotations

import os
import select
import time

from muster_worker.rank import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import List, Optional, Tuple

NAME = "muster-spare"
"""The name of a spare's processes, at most 15 bytes (comm in proc(5))."""

REFILL_SECONDS = 1.0
"""Spares are replaced after this time without a request, so that their forks don't slow down a start of ranks."""

_COMM = "/proc/self/comm"


class Spare:
    """What distinguishes a spare: its name, and a pipe that it holds open until it gets a request."""

    def __init__(self, pipe: int, own_name: str) -> None:
        self._pipe = pipe
        self._own_name = own_name

    def begin(self) -> None:
        """Make this process a spare, which ends with the fork server."""
        child.die_with_parent()
        _write_name(NAME)

    def release_pipe(self) -> None:
        """Close this process' copy of the pipe. The fork server replaces the spare once all copies are closed."""
        os.close(self._pipe)

    def end(self) -> None:
        """Make this process one of the attempt, because it has a request."""
        _write_name(self._own_name)


class SparePool:
    """The spares without a request. The fork server has the read end of each spare's pipe."""

    def __init__(self, count: int) -> None:
        """`count` is the number of spares. If this process can't change its name, there are none."""
        self._own_name = _find_changeable_name()
        self._count = 0 if self._own_name is None else count
        self._pipes: List[int] = []
        self._refill_at = time.monotonic()

    def wait(self, listener: socket.socket) -> bool:
        """Wait until another process has to be forked: for a request (returns True), or as a spare (returns False)."""
        while True:
            # If there are spares, one of them takes the request.
            readable, _, _ = select.select(self._pipes or [listener], [], [], self._compute_timeout())
            if not readable:
                return False
            self._refill_at = time.monotonic() + REFILL_SECONDS
            if not self._pipes:
                return True
            for pipe in [pipe for pipe in self._pipes if pipe in readable]:
                os.close(pipe)
                self._pipes.remove(pipe)

    def add(self) -> Tuple[Spare, int]:
        """Return another spare, and the write end of its pipe, which the fork server has to close after the fork."""
        reader, writer = os.pipe()
        self._pipes.append(reader)
        return Spare(writer, self._own_name or ""), writer

    def close(self) -> None:
        """Close the pipes in a forked process."""
        for pipe in self._pipes:
            os.close(pipe)

    def _compute_timeout(self) -> Optional[float]:
        return max(0.0, self._refill_at - time.monotonic()) if len(self._pipes) < self._count else None


def _find_changeable_name() -> Optional[str]:
    try:
        with open(_COMM, encoding="utf-8", errors="surrogateescape") as file:
            name = file.read().rstrip("\n")
        _write_name(name)
    except OSError:
        return None
    return name


def _write_name(name: str) -> None:
    with open(_COMM, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(name)

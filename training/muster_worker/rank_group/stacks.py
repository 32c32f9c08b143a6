"""Asks hooked ranks where they are: signals them and reads the stacks that they write."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from muster_worker.rank import stack_signal
from muster_worker.rank_group import progress

POLL_SECONDS = 0.01
MAX_DUMP_BYTES = 256 * 1024
"""What is read of a dump, from its end: the main thread comes last."""


@dataclass
class _Asked:
    path: str
    before: int  # the file's length when the signal was sent
    length: int = -1  # when last looked at


def capture(progress_files: Mapping[int, str], seconds: float) -> Dict[int, str]:
    """Stacks of the ranks with these progress files, by the same keys, after at most `seconds`.

    Ranks without a hook, or whose program took the signal for itself, are missing: they aren't signalled.
    """
    asked = {}
    for rank, path in progress_files.items():
        request = _ask(path)
        if request is not None:
            asked[rank] = request
    deadline = time.monotonic() + seconds
    waiting = list(asked.values())
    while waiting and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        waiting = [request for request in waiting if not _is_complete(request)]
    dumps = {rank: _read(request) for rank, request in asked.items()}
    return {rank: dump for rank, dump in dumps.items() if dump}


def _ask(progress_path: str) -> Optional[_Asked]:
    state = progress.read(progress_path)
    path = progress_path + stack_signal.SUFFIX
    if state.pid is None or state.stacks_fd is None:
        return None
    try:
        # The signal's default is to kill, and the progress file is only a process's own word. That the descriptor is
        # open on our file shows that it is the rank and where its stacks go; the mask, that the signal is handled.
        if os.readlink(f"/proc/{state.pid}/fd/{state.stacks_fd}") != os.path.realpath(path) or not _handles(state.pid):
            return None
        before = os.stat(path).st_size
        os.kill(state.pid, stack_signal.SIGNAL)
    except OSError:  # gone in between
        return None
    return _Asked(path, before)


def _handles(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (stack_signal.SIGNAL - 1) & 1)
    return False


def _is_complete(request: _Asked) -> bool:
    """Whether something was written and nothing more since the last look."""
    try:
        length = os.stat(request.path).st_size
    except OSError:  # the rank may remove it
        return True
    complete = length == request.length and length > request.before
    request.length = length
    return complete


def _read(request: _Asked) -> str:
    try:
        with os.fdopen(progress.open_plain(request.path), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(request.before, end - MAX_DUMP_BYTES))
            return file.read(MAX_DUMP_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""

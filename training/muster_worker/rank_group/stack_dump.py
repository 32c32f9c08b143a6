"""Requests stack dumps from hooked ranks with a signal, and reads them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from muster_worker.rank import stack_signal
from muster_worker.rank_group import activity, progress
from muster_worker.rank_group.rank_links import RankLink

POLL_SECONDS = 0.01

STOP_SECONDS = 0.3
"""Time limit for all ranks of the node together, so that a hanging rank doesn't delay a stop."""

MAX_DUMP_BYTES = 256 * 1024
"""Limit for the end of a dump; the main thread is last."""


@dataclass
class _Request:
    path: str
    before: int  # the file's length at the signal
    length: int = -1  # at the last check


def read_activities(live: Mapping[int, RankLink]) -> Dict[int, str]:
    """The current activity of each rank's main thread, for ranks that answer."""
    files = {rank: link.hello.progress for rank, link in live.items() if link.hello is not None}
    result = {}
    for rank, dump in capture(files, STOP_SECONDS).items():
        current = activity.describe_dump(dump)
        if current is not None:
            result[rank] = current
    return result


def capture(progress_files: Mapping[int, str], seconds: float) -> Dict[int, str]:
    """Stack dumps of the ranks with these progress files, by the same keys, after at most `seconds`.

    Ranks without a hook, or with their own handler for the signal, get no signal and have no dump.
    """
    requests = {}
    for rank, path in progress_files.items():
        request = _request_dump(path)
        if request is not None:
            requests[rank] = request
    deadline = time.monotonic() + seconds
    pending = list(requests.values())
    while pending and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        pending = [request for request in pending if not _is_complete(request)]
    dumps = {rank: _read(request) for rank, request in requests.items()}
    return {rank: dump for rank, dump in dumps.items() if dump}


def _request_dump(progress_path: str) -> Optional[_Request]:
    state = progress.read(progress_path)
    path = progress_path + stack_signal.SUFFIX
    if state.pid is None or state.stacks_fd is None:
        return None
    try:
        # Without a handler the signal kills, and any process may have written the progress file. So check that this
        # process has our file open (it is the rank) and that it handles the signal.
        target = os.readlink(f"/proc/{state.pid}/fd/{state.stacks_fd}")
        if target != os.path.realpath(path) or not _handles_signal(state.pid):
            return None
        before = os.stat(path).st_size
        os.kill(state.pid, stack_signal.SIGNAL)
    except OSError:  # the process has ended meanwhile
        return None
    return _Request(path, before)


def _handles_signal(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (stack_signal.SIGNAL - 1) & 1)
    return False


def _is_complete(request: _Request) -> bool:
    """Whether the dump has begun and hasn't grown since the last check."""
    try:
        length = os.stat(request.path).st_size
    except OSError:  # the rank may delete it
        return True
    complete = length == request.length and length > request.before
    request.length = length
    return complete


def _read(request: _Request) -> str:
    try:
        with os.fdopen(progress.open_plain(request.path), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(request.before, end - MAX_DUMP_BYTES))
            return file.read(MAX_DUMP_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""

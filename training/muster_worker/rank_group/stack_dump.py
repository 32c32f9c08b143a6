"""Requests stack dumps from hooked ranks with a signal, and reads them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from muster_worker.rank import stack_signal
from muster_worker.rank.child import handles_signal
from muster_worker.rank_group import activity, progress
from muster_worker.rank_group.rank_links import RankLink

POLL_SECONDS = 0.01

STOP_SECONDS = 0.3
"""Time limit for all ranks of the node together: a hanging rank must not delay a stop."""

HANG_SECONDS = 2.0
"""The same for ranks that hang, of which the stacks are all that there is. Other programs may use the processors."""

SETTLE_SECONDS = 0.05
"""A dump that has not grown for this time is complete. The kernel may suspend the process while it writes."""

_LAST_FRAME = b" in <module>\n"
"""How a complete dump usually ends: with the outermost frame of the main thread."""

MAX_DUMP_BYTES = 256 * 1024
"""Maximum length of a dump. Read its end, where the main thread is."""


@dataclass
class _Request:
    path: str
    start_length: int  # the file's length at the signal
    length: int = -1  # at the last check
    grew_at: float = 0.0  # when it was found longer than before, monotonic time


def read_activities(live_links: Mapping[int, RankLink]) -> Dict[int, str]:
    """Return the current activity of each rank's main thread, for ranks that answer."""
    result = {}
    for rank, dump in capture_link_dumps(live_links, STOP_SECONDS).items():
        current = activity.describe_dump(dump)
        if current is not None:
            result[rank] = current
    return result


def capture_link_dumps(live_links: Mapping[int, RankLink], seconds: float) -> Dict[int, str]:
    """Return the stack dumps of the ranks that answer in time."""
    files = {rank: link.hello.progress for rank, link in live_links.items() if link.hello is not None}
    return capture_stack_dumps(files, seconds)


def capture_stack_dumps(progress_files: Mapping[int, str], seconds: float) -> Dict[int, str]:
    """Return stack dumps of the ranks with these progress files, by the same keys, after at most `seconds`.

    Ranks without a hook, and ranks with their own handler for the signal, get no signal and are not in the result.
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
        # The signal would kill a process without a handler, and the pid may be wrong, since a user's process writes the
        # progress file. So check that this process has the file for stack dumps open and that it handles the signal.
        target = os.readlink(f"/proc/{state.pid}/fd/{state.stacks_fd}")
        if target != os.path.realpath(path) or not handles_signal(state.pid, stack_signal.SIGNAL):
            return None
        start_length = os.stat(path).st_size
        os.kill(state.pid, stack_signal.SIGNAL)
    except OSError:  # the process has ended meanwhile
        return None
    return _Request(path, start_length)


def _is_complete(request: _Request) -> bool:
    """Whether the dump has begun and is whole."""
    try:
        with os.fdopen(progress.open_regular_file(request.path), "rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(request.start_length, length - len(_LAST_FRAME)))
            end = file.read(len(_LAST_FRAME))
    except OSError:  # the rank may have deleted it
        return True
    if length != request.length:
        request.length, request.grew_at = length, time.monotonic()
    has_settled = time.monotonic() >= request.grew_at + SETTLE_SECONDS
    return length > request.start_length and (end == _LAST_FRAME or has_settled)


def _read(request: _Request) -> str:
    try:
        with os.fdopen(progress.open_regular_file(request.path), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(request.start_length, end - MAX_DUMP_BYTES))
            return file.read(MAX_DUMP_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""

"""Kill processes at once, so that none of them handles the end of another."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 60.0


def kill_at_once(pids: Sequence[int]) -> None:
    """Stop the processes, and then send them SIGKILL. Processes that have already ended are left out.

    A process handles a pending SIGTERM before a pending SIGSTOP, so this waits until all of them have stopped. It kills
    children before their parents, because the kernel continues a stopped process group whose parent has ended.
    """
    _send(pids, signal.SIGSTOP)
    deadline = time.monotonic() + STOP_SECONDS
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, f"not stopped: {pids}"
        time.sleep(0.01)
    # Children have the higher numbers.
    _send(sorted(pids, reverse=True), signal.SIGKILL)


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "TtZX"

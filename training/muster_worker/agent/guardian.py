"""The agent's parent process: it kills the processes that a killed agent leaves behind.

The agent ends its own process tree, but it can't do so after a SIGKILL (from the out-of-memory killer, for example).
The guardian is its parent, adopts the orphans and kills them. It also does what process 1 of a container has to do: it
reaps children and forwards signals.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Callable

from muster_worker.machine import processes

FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SCAN_SECONDS = 0.02


def run_guarded(run: Callable[[], int]) -> int:
    """Run `run` in a child process. Return its exit code, or die by the signal that killed the child.

    Call this before any thread starts. If the guardian itself is killed, the child gets SIGTERM.
    """
    processes.adopt_orphans()
    # The parent may have ignored SIGCHLD; the kernel would then discard the exit status of children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = (*FORWARDED_SIGNALS, signal.SIGCHLD)
    # Block the signals before the fork: a signal that arrives in between must reach the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    guardian = os.getpid()
    agent = os.fork()
    if agent == 0:
        # Leave the guardian's process group: a terminal's Ctrl-C then arrives once, forwarded by the guardian.
        os.setpgid(0, 0)
        processes.end_with_parent(guardian)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return run()
    end = _wait(agent)
    _kill_all()
    if end.signal:
        if end.signal != signal.SIGKILL:
            signal.signal(end.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {end.signal})
        os.kill(os.getpid(), end.signal)
        return 128 + end.signal  # process 1 of a container ignores signals that it sends to itself
    return end.exit_code


def _wait(agent: int) -> processes.ProcessExit:
    while True:
        for end in processes.reap():
            if end.pid == agent:
                return end
        number = signal.sigwait((*FORWARDED_SIGNALS, signal.SIGCHLD))
        if number != signal.SIGCHLD:
            processes.signal_all((agent,), number)


def _kill_all() -> None:
    """Kill all descendants until none is left."""
    while True:
        remaining = processes.signal_all(processes.list_descendants(), signal.SIGKILL)
        processes.reap()
        if not remaining:
            return
        time.sleep(_SCAN_SECONDS)

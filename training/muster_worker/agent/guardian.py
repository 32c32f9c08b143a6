"""The agent's parent process: it kills the processes that a killed agent leaves behind.

The agent ends its own process tree, but it can't do so after a SIGKILL (from the out-of-memory killer, for example).
The guardian is the agent's parent. It adopts the orphans and kills them. It also has the duties of process 1 in a
container: it reaps children and forwards signals.
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
    # This process inherits an ignored SIGCHLD from its own parent. The kernel would then discard the exit
    # status of children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = (*FORWARDED_SIGNALS, signal.SIGCHLD)
    # Block the signals before the fork: a signal that arrives in between must reach the child.
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    guardian = os.getpid()
    agent = os.fork()
    if agent == 0:
        # Leave the guardian's process group: a terminal's Ctrl-C then arrives once, forwarded by the guardian.
        os.setpgid(0, 0)
        processes.terminate_with_parent(guardian)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        return run()
    child_exit = _wait(agent)
    _kill_all()
    if child_exit.signal:
        if child_exit.signal != signal.SIGKILL:
            signal.signal(child_exit.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {child_exit.signal})
        os.kill(os.getpid(), child_exit.signal)
        return 128 + child_exit.signal  # process 1 of a container ignores signals that it sends to itself
    return child_exit.exit_code


def _wait(agent: int) -> processes.ProcessExit:
    while True:
        for child_exit in processes.reap():
            if child_exit.pid == agent:
                return child_exit
        number = signal.sigwait((*FORWARDED_SIGNALS, signal.SIGCHLD))
        if number != signal.SIGCHLD:
            processes.signal_processes((agent,), number)


def _kill_all() -> None:
    """Kill all descendants until none is left."""
    while True:
        remaining = processes.signal_processes(processes.list_descendants(), signal.SIGKILL)
        processes.reap()
        if not remaining:
            return
        time.sleep(_SCAN_SECONDS)

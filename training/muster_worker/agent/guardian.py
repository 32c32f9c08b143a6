"""A process above the agent that ends what the agent leaves behind, should somebody kill the agent itself.

The agent ends its own tree. Against its own SIGKILL (the out-of-memory killer, an operator in a hurry) it needs
somebody else: the guardian is its parent, adopts the orphans and kills them. It also is what a container's process 1
has to be: it reaps, and passes signals on.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Callable

from muster_worker.machine import processes

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SCAN_SECONDS = 0.02


def guarded(live: Callable[[], int]) -> int:
    """Run `live` in a child and return its exit code, or die by the signal that the child died by.

    Call it before any thread is started. Should the guardian itself be killed, the child gets SIGTERM.
    """
    processes.adopt_orphans()
    # whoever started us may ignore it, and then the kernel tells nobody how a child ended
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    watched = (*PASSED_ON, signal.SIGCHLD)
    # held from before the fork on: a signal in between must reach the child
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    guardian = os.getpid()
    agent = os.fork()
    if agent == 0:
        # a signal to the guardian's group, Ctrl-C at a terminal, comes through the guardian and once only
        os.setpgid(0, 0)
        processes.end_with_parent(guardian)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return live()
    end = _wait(agent)
    _end_all()
    if end.signal:
        if end.signal != signal.SIGKILL:
            signal.signal(end.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {end.signal})
        os.kill(os.getpid(), end.signal)
        return 128 + end.signal  # process 1 of a container doesn't die by its own signals
    return end.exit_code


def _wait(agent: int) -> processes.Ended:
    while True:
        for end in processes.reap():
            if end.pid == agent:
                return end
        number = signal.sigwait((*PASSED_ON, signal.SIGCHLD))
        if number != signal.SIGCHLD:
            processes.signal_all((agent,), number)


def _end_all() -> None:
    """Kill everything that is left below, until nothing is."""
    while True:
        left = processes.signal_all(processes.descendants(), signal.SIGKILL)
        processes.reap()
        if not left:
            return
        time.sleep(_SCAN_SECONDS)

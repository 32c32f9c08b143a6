"""Signals to the launchers of a rank group that stops."""

from __future__ import annotations

import signal
from typing import Iterable, Optional, Sequence

from muster_worker.launchers.launch import StartedProcess
from muster_worker.machine import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.mpi.node import MpiWorld  # only the mpi launcher needs it


def send_sigterm(live_ranks: Sequence[int], launchers: Iterable[StartedProcess], mpi_world: Optional[MpiWorld]) -> None:
    """Send SIGTERM to the ranks. `live_ranks` are the pids of ranks that run."""
    if mpi_world is not None and live_ranks:
        # Signal only the ranks. On SIGTERM mpirun and its daemons would kill the ranks after a second. Without
        # SIGTERM they exit after their ranks.
        processes.signal_processes(live_ranks, signal.SIGTERM)
        return
    if mpi_world is not None:
        mpi_world.terminate()
    for process in launchers:
        # torchrun forwards the signal to its ranks. Ranks of other launchers are in the launcher's process group.
        if process.spec.forwards_signals:
            processes.signal_processes((process.pid,), signal.SIGTERM)
        else:
            processes.signal_process_group(process.pid, signal.SIGTERM)


def hasten_end(launchers: Iterable[StartedProcess], mpi_world: Optional[MpiWorld]) -> None:
    """End the launchers without the time that they take after the end of their ranks, or shorten that time.

    Call this when the node's ranks have ended.
    """
    # Without SIGKILL torchrun needs another second to end.
    killable_pids = [process.pid for process in launchers if process.spec.can_be_killed_after_ranks]
    processes.signal_processes(killable_pids, signal.SIGKILL)
    if mpi_world is not None:
        mpi_world.hasten_end()

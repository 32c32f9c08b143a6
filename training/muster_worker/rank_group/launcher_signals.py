"""Signals to the launchers of a rank group that stops."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Collection, Dict, Iterable, Mapping, Optional, Tuple

from muster_worker.launchers.launch import StartedProcess
from muster_worker.machine import processes
from muster_worker.rank import progress_file
from muster_worker.rank.child import choose_signalled_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.mpi.node import MpiWorld  # only the mpi launcher needs it


@dataclass(frozen=True)
class LiveRank:
    """A rank that runs: its wrapper, the command that this has started, and its Python, if that has reported itself."""

    wrapper: int
    pid: int
    python: Optional[int] = None


COMMAND_SECONDS = 1.0
"""A command that goes on for this long after its ranks' Pythons have ended, as a loop of a shell does, gets SIGTERM."""

COMMAND_POLL_SECONDS = 0.1
"""The interval between two looks at such commands: no event shows the end of a process that a shell has started."""


class Sigterm:
    """The SIGTERM to a node's ranks in one attempt. `groups` are the process groups that have got it as a whole."""

    def __init__(self) -> None:
        self.groups: Tuple[int, ...] = ()
        self._pythons: Dict[int, Tuple[int, ...]] = {}  # of the other groups, by leader: only they have got it
        self._ended_at: Dict[int, float] = {}  # when a group's Pythons had ended

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None without a group to look at."""
        return COMMAND_POLL_SECONDS if self._pythons else None

    def send(
        self, live_ranks: Mapping[int, LiveRank], launchers: Iterable[StartedProcess], mpi_world: Optional[MpiWorld]
    ) -> None:
        """Send it once to each rank."""
        if mpi_world is not None and live_ranks:
            # Signal only the ranks. On SIGTERM mpirun and its daemons would kill the ranks after a second. Without
            # SIGTERM they exit after their ranks.
            _signal_ranks(live_ranks.values())
            return
        if mpi_world is not None:
            mpi_world.terminate()
        for process in launchers:
            ranks = [live for rank, live in live_ranks.items() if process.spec.rank in (None, rank)]
            pythons = tuple(live.python for live in ranks if live.python is not None)
            if process.spec.forwards_signals:  # torchrun, to its ranks' wrappers or to their process groups
                processes.signal_processes((process.pid,), signal.SIGTERM)
                self.groups += tuple(live.wrapper for live in ranks)
            elif ranks and len(pythons) == len(ranks):
                # A shell, a launcher or the reader of a pipe that gets the signal, too, ends before its rank has
                # stopped.
                _signal_ranks(ranks)
                self._pythons[process.pid] = pythons
            else:
                self._signal_group(process.pid)

    def poll(self, running: Collection[int], now: float) -> None:
        """Send it to the groups that run on although their ranks' Pythons have ended. `running` are their leaders."""
        for leader, pids in list(self._pythons.items()):
            if any(progress_file.start_time(pid) is not None for pid in pids):
                continue
            ended_at = self._ended_at.setdefault(leader, now)
            if leader in running and now >= ended_at + COMMAND_SECONDS:
                del self._pythons[leader]
                self._signal_group(leader)

    def _signal_group(self, leader: int) -> None:
        processes.signal_process_group(leader, signal.SIGTERM)
        self.groups += (leader,)


def _signal_ranks(ranks: Iterable[LiveRank]) -> None:
    for live in ranks:
        processes.signal_processes(choose_signalled_pids(live.pid, live.python, signal.SIGTERM), signal.SIGTERM)


def hasten_end(launchers: Iterable[StartedProcess], mpi_world: Optional[MpiWorld]) -> None:
    """End the launchers without the time that they take after the end of their ranks, or shorten that time.

    Call this when the node's ranks have ended.
    """
    # Without SIGKILL torchrun needs another second to end.
    killable_pids = [process.pid for process in launchers if process.spec.can_be_killed_after_ranks]
    processes.signal_processes(killable_pids, signal.SIGKILL)
    if mpi_world is not None:
        mpi_world.hasten_end()

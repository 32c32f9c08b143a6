"""Signals to the launchers of a rank group that stops."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Tuple

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


@dataclass(frozen=True)
class Signalled:
    """Who has got SIGTERM: process groups as a whole, and of other groups, by leader, only the ranks' Pythons."""

    groups: Tuple[int, ...] = ()
    pythons: Mapping[int, Tuple[int, ...]] = field(default_factory=dict)


def send_sigterm(
    live_ranks: Mapping[int, LiveRank], launchers: Iterable[StartedProcess], mpi_world: Optional[MpiWorld]
) -> Signalled:
    """Send SIGTERM once to each rank."""
    if mpi_world is not None and live_ranks:
        # Signal only the ranks. On SIGTERM mpirun and its daemons would kill the ranks after a second. Without
        # SIGTERM they exit after their ranks.
        _signal_ranks(live_ranks.values())
        return Signalled()
    if mpi_world is not None:
        mpi_world.terminate()
    groups: List[int] = []
    pythons: Dict[int, Tuple[int, ...]] = {}
    for process in launchers:
        ranks = [live for rank, live in live_ranks.items() if process.spec.rank in (None, rank)]
        if process.spec.forwards_signals:  # torchrun, to its ranks' wrappers or to their process groups
            processes.signal_processes((process.pid,), signal.SIGTERM)
            groups += [live.wrapper for live in ranks]
        elif ranks and all(live.python is not None for live in ranks):
            # A shell, a launcher or the reader of a pipe that gets the signal, too, ends before its rank has stopped.
            _signal_ranks(ranks)
            pythons[process.pid] = tuple(live.python for live in ranks if live.python is not None)
        else:
            processes.signal_process_group(process.pid, signal.SIGTERM)
            groups.append(process.pid)
    return Signalled(tuple(groups), pythons)


def signal_commands(
    signalled: Signalled, running: Collection[int], now: float, ended_at: Dict[int, float]
) -> Signalled:
    """Send SIGTERM to the groups that run on although their ranks' Pythons have ended. `ended_at` has these times.

    `running` are the leaders that run.
    """
    for leader, pids in signalled.pythons.items():
        if all(progress_file.start_time(pid) is None for pid in pids):
            ended_at.setdefault(leader, now)
    due = [leader for leader in signalled.pythons if now >= ended_at.get(leader, now) + COMMAND_SECONDS]
    due = [leader for leader in due if leader in running]
    for leader in due:
        processes.signal_process_group(leader, signal.SIGTERM)
    others = {leader: pids for leader, pids in signalled.pythons.items() if leader not in due}
    return Signalled((*signalled.groups, *due), others) if due else signalled


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

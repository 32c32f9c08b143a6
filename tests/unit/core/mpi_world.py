"""A simulated MPI world: mpirun on node 0, which ends all ranks after the first failure; other nodes wait for a
command.
"""

from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster_worker.contract.schema import Command, CommandKind, LauncherEnd, Order
from unit.core.simulated import SimulatedNode, SimulatedRank, World

OPEN_MPI = "Open MPI"
HYDRA = "Hydra"

_WORDS = {
    OPEN_MPI: "mpirun noticed that process rank 1 with PID 7 on node algo-1 exited on signal 9 (Killed).",
    HYDRA: "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
}
_CLEANUP_SIGNAL = {OPEN_MPI: 15, HYDRA: 9}


@dataclass
class MpiNode(SimulatedNode):
    """`mpirun` is set on node 0 once its mpirun has ended, with the time."""

    mpirun: LauncherEnd | None = None
    ended_at: float = 0.0
    _told: Order | None = None

    @property
    def is_over(self) -> bool:
        ranks_are_gone = super().is_over
        if self.number == 0:
            return ranks_are_gone and self.mpirun is not None
        return ranks_are_gone and self._told is not None

    def launcher(self, now: float) -> LauncherEnd | None:
        return None if self.mpirun is None else replace(self.mpirun, age=now - self.ended_at)

    def create(self, replacement: int, at: float) -> None:
        self.mpirun, self._told = None, None
        super().create(replacement, at)

    def end_mpirun(
        self, at: float, exit_code: int | None, signal: int | None = None, line: str = "", *, stopped: bool = False
    ) -> None:
        if self.mpirun is None and self.is_alive:
            self.mpirun = LauncherEnd(
                "mpirun", 0.0, exit_code, signal, last_lines=(line,) if line else (), stopped=stopped
            )
            self.ended_at = at

    def _execute(self, command: Command, now: float, first_rank: int) -> None:
        if command.kind in (CommandKind.STOP, CommandKind.KILL):
            self._told = command.order
            if self.number == 0:
                self.end_mpirun(now, None, 15, stopped=True)
        super()._execute(command, now, first_rank)


@dataclass
class MpiWorld(World):
    """`family` is the MPI implementation's family."""

    family: str = OPEN_MPI
    mpi: list[MpiNode] = field(default_factory=list)

    def run_round(self, *, newest_first: bool = False, applied: int | None = None) -> tuple[object, ...]:  # type: ignore[override]
        self.mpirun(self.now + 0.05)
        return super().run_round(newest_first=newest_first, applied=applied)

    @property
    def ranks(self) -> list[SimulatedRank]:
        return [rank for node in self.mpi for rank in node.ranks]

    def mpirun(self, now: float) -> None:
        """mpirun's own actions at `now`: none, unless a rank or a node has ended, or all are done."""
        first = self.mpi[0]
        if first.mpirun is not None or not first.is_alive or not all(node.started_attempts for node in self.mpi):
            return
        bad = [rank for rank in self.ranks if rank.ended_at is not None and rank.exit_code != 0]
        if bad:
            self._clean_up(now)
            first.end_mpirun(now, bad[0].exit_code or 128 + (bad[0].signal or 0), line=_WORDS[self.family])
        elif not all(node.is_alive for node in self.mpi):
            self._clean_up(now)
            first.end_mpirun(now, 1, line="ORTE has lost communication with a remote daemon.")
        elif all(rank.ended_at is not None for rank in self.ranks):
            first.end_mpirun(now, 0)

    def _clean_up(self, now: float) -> None:
        for rank in self.ranks:
            rank.end(now, None, _CLEANUP_SIGNAL[self.family])


def new_mpi_world(job: Job, family: str, starts: tuple[int, ...]) -> MpiWorld:
    """Return a world whose nodes start as many ranks as `starts` has."""
    nodes = [MpiNode(number, count) for number, count in enumerate(starts)]
    return MpiWorld(job, list(nodes), family=family, mpi=nodes)

"""A simulated MPI world: mpirun runs on node 0 and ends all ranks after the first failure. Other nodes wait for a
command.
"""

from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster_worker.contract.schema import Command, CommandKind, LauncherEnd, Order
from unit.core.simulated import SimulatedNode, SimulatedRank, World

OPEN_MPI = "Open MPI"
HYDRA = "Hydra"

_FAILURE_LINES = {
    OPEN_MPI: "mpirun noticed that process rank 1 with PID 7 on node algo-1 exited on signal 9 (Killed).",
    HYDRA: "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
}
_CLEANUP_SIGNAL = {OPEN_MPI: 15, HYDRA: 9}


@dataclass
class MpiNode(SimulatedNode):
    """`mpirun` and `ended_at` are set on node 0 when its mpirun has ended. `_final_order` is the order of its Stop."""

    mpirun: LauncherEnd | None = None
    ended_at: float = 0.0
    _final_order: Order | None = None

    @property
    def is_over(self) -> bool:
        have_ranks_ended = super().is_over
        if self.number == 0:
            return have_ranks_ended and self.mpirun is not None
        return have_ranks_ended and self._final_order is not None

    def launcher(self, now: float) -> LauncherEnd | None:
        return None if self.mpirun is None else replace(self.mpirun, age=now - self.ended_at)

    def create(self, replacement: int, at: float) -> None:
        self.mpirun, self._final_order = None, None
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
            self._final_order = command.order
            if self.number == 0:
                self.end_mpirun(now, None, 15, stopped=True)
        super()._execute(command, now, first_rank)


@dataclass
class MpiWorld(World):
    """`family` is the family of the MPI implementation. `mpi` has the same nodes as `nodes`."""

    family: str = OPEN_MPI
    mpi: list[MpiNode] = field(default_factory=list)

    def run_round(self, *, newest_first: bool = False, applied: int | None = None) -> tuple[object, ...]:  # type: ignore[override]
        self.run_mpirun(self.now + 0.05)
        return super().run_round(newest_first=newest_first, applied=applied)

    @property
    def ranks(self) -> list[SimulatedRank]:
        return [rank for node in self.mpi for rank in node.ranks]

    def run_mpirun(self, now: float) -> None:
        """Let mpirun act at `now`: it ends when a rank fails, a node exits, or all ranks have succeeded."""
        head = self.mpi[0]
        if head.mpirun is not None or not head.is_alive or not all(node.started_attempts for node in self.mpi):
            return
        failed = [rank for rank in self.ranks if rank.ended_at is not None and rank.exit_code != 0]
        if failed:
            self._clean_up(now)
            head.end_mpirun(now, failed[0].exit_code or 128 + (failed[0].signal or 0), line=_FAILURE_LINES[self.family])
        elif not all(node.is_alive for node in self.mpi):
            self._clean_up(now)
            head.end_mpirun(now, 1, line="ORTE has lost communication with a remote daemon.")
        elif all(rank.ended_at is not None for rank in self.ranks):
            head.end_mpirun(now, 0)

    def _clean_up(self, now: float) -> None:
        for rank in self.ranks:
            rank.end(now, None, _CLEANUP_SIGNAL[self.family])


def new_mpi_world(job: Job, family: str, rank_counts: tuple[int, ...]) -> MpiWorld:
    """Return a world with one node for each number in `rank_counts`: the number of ranks that the node starts."""
    nodes = [MpiNode(number, count) for number, count in enumerate(rank_counts)]
    return MpiWorld(job, list(nodes), family=family, mpi=nodes)

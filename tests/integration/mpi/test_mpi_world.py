"""MPI worlds of several nodes, started through the agents by each implementation's own mpirun."""

import os
import sys

from agent_world import AgentWorld
from mpi_installs import Install
from muster_worker.contract import AgentPhase, CommandKind, Launcher, RankState, Report

NODES, PROCS = 3, 2

SUM = """
import os, sys
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
print("SUM", world.rank, world.size, node.size, world.allreduce(world.rank), os.environ["SM_CURRENT_HOST"], flush=True)
"""


def run(world: AgentWorld, mpi: Install, *command: str) -> list[Report]:
    """The last reports of all nodes, once node 0's mpirun has ended and the others were told to end."""
    world.make_plan(*command, launcher=Launcher.MPI, nodes=NODES, procs=PROCS)
    world.launch(environment=mpi.added_to(os.environ))
    world.wait_ended(0)
    world.send(CommandKind.STOP, grace=2.0)
    return [world.wait_ended(node) for node in range(NODES)]


def test_sum_over_three_nodes(world: AgentWorld, mpi: Install) -> None:
    reports = run(world, mpi, sys.executable, world.script(SUM))
    ranks = [rank for report in reports for rank in report.ranks]
    ends = [(rank.rank, rank.local_rank, rank.state, rank.exit_code, rank.stopped) for rank in ranks]
    assert ends == [(rank, rank % PROCS, RankState.EXITED, 0, False) for rank in range(NODES * PROCS)]
    assert reports[0].launcher is not None
    assert (reports[0].launcher.name, reports[0].launcher.exit_code) == ("mpirun", 0)
    for node in range(NODES):
        for rank in range(node * PROCS, (node + 1) * PROCS):
            assert f"[rank {rank}] SUM {rank} {NODES * PROCS} {PROCS} 15 algo-{node + 1}\n" in world.log(node)
    assert [report.phase for report in reports] == [AgentPhase.ENDED] * NODES
    assert world.leave() == 0

"""An mpirun that waits after the end of its ranks, as Open MPI does between its signals."""

import os
import sys
from pathlib import Path

from muster_worker.contract.schema import CommandKind, Launcher
from support.agent_world import AgentWorld

MPIRUN = f"""#!{sys.executable}
import os, signal, subprocess, sys
if "--version" in sys.argv:
    sys.exit("mpirun (Open MPI) 5.0.11")
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGCHLD}})
command = sys.argv[sys.argv.index("--map-by") + 2 :]
names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
world = {{f"OMPI_COMM_WORLD_{{name}}": value for name, value in zip(names, "0101")}}
with subprocess.Popen(command, env={{**os.environ, **world}}) as rank:
    signal.sigwait({{signal.SIGCHLD}})
    rank.wait()
signal.sigwait({{signal.SIGCHLD}})
sys.exit(5)
"""


def test_an_mpirun_does_not_wait_for_ranks_that_a_stop_has_ended(world: AgentWorld) -> None:
    Path(world.write_script(MPIRUN, "mpirun")).chmod(0o700)
    world.make_plan("sleep", "600", launcher=Launcher.MPI, nodes=1, procs=1)
    world.launch(environment={**os.environ, "PATH": f"{world.folder}:{os.environ['PATH']}"})
    world.wait(0, lambda report: bool(report.ranks) and report.ranks[0].pid is not None)
    world.send(CommandKind.STOP, grace=600.0)
    report = world.wait_ended(0)
    assert report.launcher is not None
    assert (report.launcher.exit_code, report.ranks[0].signal) == (5, 15)

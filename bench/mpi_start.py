"""How long an mpirun takes to start a world through the agents, against the same with a program that just executes.

    PYTHONPATH=tests:tools python bench/mpi_start.py [--mpi openmpi5] [--nodes 64] [--pairs 7]

The nodes are agents of one job on this machine. The job's command is a program called mpirun, which runs the
real one twice a pair, in turn: as the agent told it, and with a shell script in the agents' place, which only executes
(under the node's host name, as MPI tells nodes apart by it; so root has to run this). Both start one rank a node: a
world of MPI, up to its first barrier, or with `--bare` `sleep 0.05`. Prints one JSON line; times are in seconds, from
mpirun's start to its end.

Beside other work it wants a cpu control group of its own: outside of one Linux gives each session a share of the
processors, and through the agents each node is a session (seen: ratios of 0.2 and 0.35 at a load of 60).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RESULT = "MPI_START_RESULT "
WORLD = """
import os, sys
sys.path.append(os.environ["MPI4PY"])
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
"""
UNWATCHED = ("env", "-u", "PYTHONPATH", "-u", "MUSTER_HOOK")  # what ranks tell the agent is another cost
BARE = ("sleep", "0.05")
WAIT_SECONDS = 900

STAND_IN = """#!/bin/sh
while :; do case "$1" in -*) shift;; *) break;; esac; done
host=$1
shift
exec unshare --uts /bin/sh -c "hostname $host; $*" </dev/null
"""

AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC")
HOOK = (
    *("PYTHONPATH", "MUSTER_HOOK", "MUSTER_FIRST_NODE_FILE"),
    *("OMPI_MCA_orte_fork_agent", "PRTE_MCA_odls_base_exec_agent", "I_MPI_GTOOL"),
)


def main(arguments: Sequence[str]) -> int:
    """Start the agents and print what the program in mpirun's place says; the exit code."""
    from fakes import agent_collector  # noqa: PLC0415 - nothing of them where mpirun's time is taken
    from muster_worker.contract.schema import CommandKind, Launcher  # noqa: PLC0415
    from support import mpi_installs  # noqa: PLC0415
    from support.agent_world import AgentWorld  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=mpi_installs.NAMES, default="openmpi5")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--bare", action="store_true", help="ranks that are no MPI programs")
    options = parser.parse_args(arguments)
    agent_collector.HEARTBEAT_SECONDS = 10.0  # what agents say of themselves meanwhile is not what is measured
    mpi = mpi_installs.install(options.mpi)
    with tempfile.TemporaryDirectory() as folder, AgentWorld(Path(folder)) as world:
        in_its_place = Path(folder) / "mpirun"
        in_its_place.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} --measure "$@"\n')
        in_its_place.chmod(0o755)
        world.make_plan(
            *(str(in_its_place), str(options.nodes), str(options.pairs), options.mpi),
            *(BARE if options.bare else (*UNWATCHED, sys.executable, world.script(WORLD))),
            launcher=Launcher.MPI,
            nodes=options.nodes,
        )
        world.launch(environment=mpi.added_to(os.environ))
        world.wait(0, lambda report: report.launcher is not None, WAIT_SECONDS)
        world.send(CommandKind.KILL)
        said = [line for line in world.log(0).splitlines() if RESULT in line]
        if not said:
            print(world.log(0), file=sys.stderr)
            return 1
        print(said[0].partition(RESULT)[2])
    return 0


def measure(nodes: int, pairs: int, mpi: str, rank: Sequence[str]) -> None:
    """What runs on node 0: mpirun with the agents and without, in turn."""
    through_agents = {name: value for name, value in os.environ.items() if name not in HOOK}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "stand-in"
        script.write_text(STAND_IN, encoding="ascii")
        script.chmod(0o755)
        plain = {**through_agents, **dict.fromkeys(AGENTS, str(script))}
        command = ["mpirun", *options_of(mpi, nodes), *rank]
        for environment in (through_agents, plain):  # the first of each reads from the disk
            timed(command, environment)
        times = [(timed(command, through_agents), timed(command, plain)) for _ in range(pairs)]
    agents, stand_ins = zip(*times, strict=True)
    result = {
        "bench": "mpi_start",
        "mpi": mpi,
        "nodes": nodes,
        "rank": "bare" if rank[0] == BARE[0] else "MPI",
        "pairs": pairs,
        "agents": round(statistics.median(agents), 3),
        "stand_in": round(statistics.median(stand_ins), 3),
        "ratio": round(statistics.median(agents) / statistics.median(stand_ins), 3),
    }
    print(RESULT + json.dumps(result), flush=True)


def options_of(mpi: str, nodes: int) -> list[str]:
    """One rank on each node; the host files are in the environment."""
    if mpi.startswith("openmpi"):
        return ["-np", str(nodes), "--map-by", "ppr:1:node"]
    return ["-n", str(nodes), "-ppn", "1"]


def timed(command: Sequence[str], environment: dict[str, str]) -> float:
    """Run it to its end, which must be a good one."""
    begun = time.monotonic()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=120)
    return time.monotonic() - begun


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        sys.exit(main(sys.argv[1:]))

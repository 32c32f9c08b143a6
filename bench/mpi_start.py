"""Measures how long mpirun takes to start a world through the agents, compared with a shell script.

    PYTHONPATH=tests:tools python bench/mpi_start.py [--mpi openmpi5] [--nodes 64] [--pairs 7]

The nodes are agents of one job on this machine. The job's command is a program called mpirun, which runs the real
mpirun twice per pair: first through the agents, then through a shell script that replaces them. The script only runs
the command with the node's host name, by which MPI distinguishes nodes. That needs root. Both start one rank per node:
an MPI program up to its first barrier, or `sleep 0.05` with `--bare`. Prints one JSON line. Times are in seconds, from
mpirun's start to its end.

On a busy machine run it in its own CPU cgroup. Otherwise Linux gives each session a share of the CPUs, and the agents
start a session per node: at a load of 60 the ratio was 0.2 to 0.35.
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
WITHOUT_HOOK = ("env", "-u", "PYTHONPATH", "-u", "MUSTER_HOOK")  # without the cost of the ranks' reports
BARE = ("sleep", "0.05")
WAIT_SECONDS = 900

EXEC_SCRIPT = """#!/bin/sh
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
    """Start the agents and print the result of the program that they run as mpirun. Returns the exit code."""
    from fakes import agent_collector  # noqa: PLC0415 - not imported by the process that measures mpirun
    from muster_worker.contract.schema import CommandKind, Launcher  # noqa: PLC0415
    from support import mpi_installs  # noqa: PLC0415
    from support.agent_world import AgentWorld  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", choices=mpi_installs.NAMES, default="openmpi5")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--bare", action="store_true", help="ranks do not use MPI")
    options = parser.parse_args(arguments)
    agent_collector.HEARTBEAT_SECONDS = 10.0  # fewer reports during the measurement
    mpi = mpi_installs.install(options.mpi)
    with tempfile.TemporaryDirectory() as folder, AgentWorld(Path(folder)) as world:
        fake_mpirun = Path(folder) / "mpirun"
        fake_mpirun.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} --measure "$@"\n')
        fake_mpirun.chmod(0o755)
        world.make_plan(
            *(str(fake_mpirun), str(options.nodes), str(options.pairs), options.mpi),
            *(BARE if options.bare else (*WITHOUT_HOOK, sys.executable, world.write_script(WORLD))),
            launcher=Launcher.MPI,
            nodes=options.nodes,
        )
        world.launch(environment=mpi.add_to(os.environ))
        world.wait(0, lambda report: report.launcher is not None, WAIT_SECONDS)
        world.send(CommandKind.KILL)
        results = [line for line in world.log(0).splitlines() if RESULT in line]
        if not results:
            print(world.log(0), file=sys.stderr)
            return 1
        print(results[0].partition(RESULT)[2])
    return 0


def measure(nodes: int, pairs: int, mpi: str, rank: Sequence[str]) -> None:
    """Run mpirun on node 0, in turns through the agents and through the script."""
    through_agents = {name: value for name, value in os.environ.items() if name not in HOOK}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "stand-in"
        script.write_text(EXEC_SCRIPT, encoding="ascii")
        script.chmod(0o755)
        plain = {**through_agents, **dict.fromkeys(AGENTS, str(script))}
        command = ["mpirun", *build_options(mpi, nodes), *rank]
        for environment in (through_agents, plain):  # warm-up: the first run reads from the disk
            measure_seconds(command, environment)
        times = [(measure_seconds(command, through_agents), measure_seconds(command, plain)) for _ in range(pairs)]
    agents, exec_times = zip(*times, strict=True)
    result = {
        "bench": "mpi_start",
        "mpi": mpi,
        "nodes": nodes,
        "rank": "bare" if rank[0] == BARE[0] else "MPI",
        "pairs": pairs,
        "agents": round(statistics.median(agents), 3),
        "stand_in": round(statistics.median(exec_times), 3),
        "ratio": round(statistics.median(agents) / statistics.median(exec_times), 3),
    }
    print(RESULT + json.dumps(result), flush=True)


def build_options(mpi: str, nodes: int) -> list[str]:
    """Return mpirun's options for one rank per node. The host files are in the environment."""
    if mpi.startswith("openmpi"):
        return ["-np", str(nodes), "--map-by", "ppr:1:node"]
    return ["-n", str(nodes), "-ppn", "1"]


def measure_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Run a command and return its duration. Raises if it fails."""
    started = time.monotonic()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=120)
    return time.monotonic() - started


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        sys.exit(main(sys.argv[1:]))

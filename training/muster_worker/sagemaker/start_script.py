"""What runs a job's command on each node of SageMaker where its toolkit can't: `muster_start.py` in the source archive.

It stands alone, beside its settings (`muster_start.json`), and reads where it is from SageMaker's own files. torchrun
meets on the first host; ranks without a launcher of their own are started here; else the command runs once.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, NoReturn, Sequence, TypedDict

    class Settings(TypedDict):
        """What muster_start.json holds; `procs` is Auto or a number."""

        launcher: str
        args: List[str]
        procs: str
        command: List[str]


MASTER_PORT = "7777"
"""As SageMaker's own torchrun has it: sagemaker-training 5.1.4, torch_distributed.py."""

_GRACE_SECONDS = 100
"""SageMaker gives containers 120 s from SIGTERM to the end: Developer Guide, "How SageMaker AI Runs Your Training
Image"."""


class Place:
    """Where this node is among the job's hosts."""

    def __init__(self, base: str) -> None:
        with open(os.path.join(base, "input", "config", "resourceconfig.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.hosts: List[str] = list(document["hosts"])
        self.host: str = document["current_host"]
        self.node = self.hosts.index(self.host)


def main(arguments: Sequence[str]) -> None:
    """Run the job's command with more arguments, as this process or as its ranks; it doesn't return, save for MPI."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "muster_start.json"), encoding="utf-8") as file:
        settings: Settings = json.load(file)
    base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
    place = Place(base)
    procs = ranks_here(str(settings["procs"]))
    environment = {**sagemaker_variables(base, place), **os.environ, **meeting(place)}
    start = Start(settings, arguments, folder, place=place, procs=procs, environment=environment)
    STARTERS[settings["launcher"]](start)


class Start:
    """What a launcher here starts from. `rank` is the command inside the wrapper of a rank."""

    def __init__(
        self,
        settings: Settings,
        arguments: Sequence[str],
        folder: str,
        *,
        place: Place,
        procs: int,
        environment: Dict[str, str],
    ) -> None:
        self.settings = settings
        self.arguments = arguments
        self.command = [*settings["command"], *arguments]
        self.rank = watched(folder, self.command)
        self.place = place
        self.procs = procs
        self.environment = environment


def by_toolkit(start: Start) -> None:
    """Each rank that SageMaker's toolkit starts runs this script, which has only to run the command."""
    take_over(start.rank, dict(os.environ))


def by_torchrun(start: Start) -> None:
    """torchrun with its node's ranks."""
    command = [*torchrun(start.place, start.procs), *start.settings["args"], "--no-python", *start.rank]
    take_over(command, start.environment)


def by_mpi(start: Start) -> None:
    """SageMaker's toolkit with mpirun."""
    start_mpi(start.settings["command"][-1], start.arguments, start.settings["args"], start.procs)


def directly(start: Start) -> None:
    """The node's ranks, as this process's children."""
    sys.exit(start_ranks(start.rank, start.place, start.procs, start.environment))


def by_command(start: Start) -> None:
    """The command, which starts its node's ranks itself."""
    take_over(start.command, {**start.environment, **per_node(start.place, start.procs)})


def take_over(command: List[str], environment: Dict[str, str]) -> NoReturn:
    """Become the command."""
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)


def watched(folder: str, command: List[str]) -> List[str]:
    """The command of a rank inside the wrapper that tells muster how it is, where muster has put that beside us."""
    agent = os.path.join(folder, "muster_entry.pyz")
    # An agent that can't run here must not keep the training from running.
    if sys.version_info < (3, 8) or not os.path.exists(agent):
        return command
    return [sys.executable, "-I", "-S", agent, "log-rank", "--", *command]


def ranks_here(procs: str) -> int:
    """How many ranks this node has: as asked for, else one for each of its devices, at least one."""
    if procs != "Auto":
        return int(procs)
    value = [os.environ.get(name, "") for name in ("SM_NUM_GPUS", "SM_NUM_NEURONS")]
    counts = [int(text) for text in value if text.isdigit()]
    match = sum(re.match(r"nvidia[0-9]+$", name) is not None for name in os.listdir("/dev"))
    return max([*counts, 1] if counts else [match, 1])


def torchrun(place: Place, procs: int) -> List[str]:
    """torchrun and its rendezvous."""
    nodes = len(place.hosts)
    words = ["torchrun", "--nnodes", str(nodes), "--nproc_per_node", str(procs)]
    if nodes == 1:
        return [*words, "--standalone"]
    return [*words, "--node_rank", str(place.node), "--master_addr", place.hosts[0], "--master_port", MASTER_PORT]


def meeting(place: Place) -> Dict[str, str]:
    """Where all ranks meet."""
    return {"MASTER_ADDR": place.hosts[0], "MASTER_PORT": MASTER_PORT}


def per_node(place: Place, procs: int) -> Dict[str, str]:
    """What a command needs that starts its node's ranks itself."""
    return {
        "PET_NNODES": str(len(place.hosts)),
        "PET_NPROC_PER_NODE": str(procs),
        "PET_NODE_RANK": str(place.node),
        "PET_MASTER_ADDR": place.hosts[0],
        "PET_MASTER_PORT": MASTER_PORT,
        "NODE_RANK": str(place.node),
    }


def sagemaker_variables(base: str, place: Place) -> Dict[str, str]:
    """What scripts for SageMaker read, where no toolkit has told it."""
    data = os.path.join(base, "input", "data")
    channels = sorted(os.listdir(data)) if os.path.isdir(data) else []
    return {
        "SM_HOSTS": json.dumps(place.hosts),
        "SM_CURRENT_HOST": place.host,
        "SM_MODEL_DIR": os.path.join(base, "model"),
        "SM_OUTPUT_DIR": os.path.join(base, "output"),
        "SM_OUTPUT_DATA_DIR": os.path.join(base, "output", "data"),
        "SM_INPUT_DIR": os.path.join(base, "input"),
        "SM_CHANNELS": json.dumps(channels),
        **{f"SM_CHANNEL_{re.sub('[.-]', '_', name).upper()}": os.path.join(data, name) for name in channels},
    }


def start_ranks(command: Sequence[str], place: Place, procs: int, environment: Mapping[str, str]) -> int:
    """Run the node's ranks; the exit code of the first that fails, which ends the others, else 0."""
    ranks: List[subprocess.Popen[bytes]] = []
    asked_to_stop: List[int] = []

    def stop(number: int, _: object) -> None:
        asked_to_stop.append(number)
        if len(ranks) == procs and len(asked_to_stop) == 1:
            end(ranks)

    signal.signal(signal.SIGTERM, stop)
    for local in range(procs):
        ranks.append(subprocess.Popen(command, env={**environment, **rank_variables(place, procs, local)}))
        if asked_to_stop and len(ranks) == procs:
            end(ranks)  # who asked while they were being started has reached none of them
    running = {rank.pid: rank for rank in ranks}
    failed = 0
    while running:
        pid, status = os.waitpid(-1, 0)
        rank = running.pop(pid, None)
        if rank is None:
            continue
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        rank.returncode = code
        if code and not failed:
            failed = code
            end(list(running.values()))
    return failed or (128 + asked_to_stop[0] if asked_to_stop else 0)


def end(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask ranks to stop, and have those killed that don't in time."""
    for rank in ranks:
        if rank.returncode is None:
            os.kill(rank.pid, signal.SIGTERM)

    def kill(_: int, __: object) -> None:
        for rank in ranks:
            if rank.returncode is None:
                os.kill(rank.pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(_GRACE_SECONDS)


def start_mpi(program: str, arguments: Sequence[str], options: Sequence[str], procs: int) -> None:
    """Have SageMaker's toolkit start mpirun and what it needs on each host: sagemaker-training 5.1.4, runner.py."""
    try:
        # by name: it is the image's, where there is one
        entry_point = importlib.import_module("sagemaker_training.entry_point")
        runner = importlib.import_module("sagemaker_training.runner")
    except ImportError:
        sys.exit(
            "MPI is started by SageMaker's training toolkit, which this image lacks: pip install sagemaker-training"
        )
    entry_point.run(
        uri=os.getcwd(),
        user_entry_point=program,
        args=list(arguments),
        runner_type=runner.MPIRunnerType,
        extra_opts={
            "sagemaker_mpi_num_of_processes_per_host": procs,
            "sagemaker_mpi_custom_mpi_options": " ".join(shlex.quote(option) for option in options),
        },
    )


def rank_variables(place: Place, procs: int, local: int) -> Dict[str, str]:
    """The rank's place in the world."""
    nodes = len(place.hosts)
    return {
        "RANK": str(place.node * procs + local),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(nodes * procs),
        "LOCAL_WORLD_SIZE": str(procs),
        "GROUP_RANK": str(place.node),
        "GROUP_WORLD_SIZE": str(nodes),
        "NODE_RANK": str(place.node),
    }


STARTERS = {
    "toolkit": by_toolkit,
    "torchrun": by_torchrun,
    "mpi": by_mpi,
    "direct": directly,
    "perNode": by_command,
}
"""The launchers by their names in the settings. The operator refuses others (`is_for_sagemaker`)."""


if __name__ == "__main__":
    main(sys.argv[1:])

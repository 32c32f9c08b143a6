"""Runs a job's command on a SageMaker node if the toolkit can't. In the source archive it is `muster_start.py`.

It imports no other module of muster. It reads its settings (`muster_start.json`) and SageMaker's configuration files.
Depending on the launcher, it starts torchrun with a rendezvous on the first host, the ranks, or the command itself.
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
        """The content of muster_start.json. `procs` is Auto or a number."""

        launcher: str
        args: List[str]
        procs: str
        command: List[str]


MASTER_PORT = "7777"
"""The port of SageMaker's own torchrun: sagemaker-training 5.1.4, torch_distributed.py."""

_GRACE_SECONDS = 100
"""SageMaker kills a container 120 s after SIGTERM: Developer Guide, "How SageMaker AI Runs Your Training Image"."""


class JobHosts:
    """The job's hosts, and this node's host and rank."""

    def __init__(self, base: str) -> None:
        with open(os.path.join(base, "input", "config", "resourceconfig.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.hosts: List[str] = list(document["hosts"])
        self.host: str = document["current_host"]
        self.node = self.hosts.index(self.host)


def main(arguments: Sequence[str]) -> None:
    """Run the job's command with `arguments`, as this process or as its ranks. Returns only for MPI."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "muster_start.json"), encoding="utf-8") as file:
        settings: Settings = json.load(file)
    base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
    job_hosts = JobHosts(base)
    procs = count_ranks(str(settings["procs"]))
    environment = {**build_sagemaker_variables(base, job_hosts), **os.environ, **build_rendezvous_variables(job_hosts)}
    launcher_input = LauncherInput(
        settings, arguments, folder, job_hosts=job_hosts, procs=procs, environment=environment
    )
    STARTERS[settings["launcher"]](launcher_input)


class LauncherInput:
    """The input of a launcher. `rank` is the job's command in a rank's wrapper."""

    def __init__(
        self,
        settings: Settings,
        arguments: Sequence[str],
        folder: str,
        *,
        job_hosts: JobHosts,
        procs: int,
        environment: Dict[str, str],
    ) -> None:
        self.settings = settings
        self.arguments = arguments
        self.command = [*settings["command"], *arguments]
        self.rank = wrap_rank(folder, self.command)
        self.job_hosts = job_hosts
        self.procs = procs
        self.environment = environment


def run_as_rank(launcher_input: LauncherInput) -> None:
    """Run the command: SageMaker's toolkit starts this script for each rank."""
    replace_process(launcher_input.rank, dict(os.environ))


def run_torchrun(launcher_input: LauncherInput) -> None:
    """Run torchrun, which starts the node's ranks."""
    command = [
        *build_torchrun_command(launcher_input.job_hosts, launcher_input.procs),
        *launcher_input.settings["args"],
        "--no-python",
        *launcher_input.rank,
    ]
    replace_process(command, launcher_input.environment)


def run_mpi(launcher_input: LauncherInput) -> None:
    """Run mpirun with SageMaker's toolkit."""
    start_mpi(
        launcher_input.settings["command"][-1],
        launcher_input.arguments,
        launcher_input.settings["args"],
        launcher_input.procs,
    )


def run_ranks(launcher_input: LauncherInput) -> None:
    """Run the node's ranks as children of this process."""
    sys.exit(
        start_ranks(launcher_input.rank, launcher_input.job_hosts, launcher_input.procs, launcher_input.environment)
    )


def run_per_node(launcher_input: LauncherInput) -> None:
    """Run the command, which starts the node's ranks itself."""
    replace_process(
        launcher_input.command,
        {**launcher_input.environment, **build_per_node_variables(launcher_input.job_hosts, launcher_input.procs)},
    )


def replace_process(command: List[str], environment: Dict[str, str]) -> NoReturn:
    """Replace this process with the command."""
    sys.stdout.flush()
    os.execvpe(command[0], command, environment)


def wrap_rank(folder: str, command: List[str]) -> List[str]:
    """Wrap the command with the agent's wrapper, which reports to the log, if the archive contains the agent."""
    agent = os.path.join(folder, "muster_entry.pyz")
    # The training must run even if the agent can't.
    if sys.version_info < (3, 8) or not os.path.exists(agent):
        return command
    return [sys.executable, "-I", "-S", agent, "log-rank", "--", *command]


def count_ranks(procs: str) -> int:
    """Return the number of ranks on this node: as configured, or one per device and at least one."""
    if procs != "Auto":
        return int(procs)
    counts_text = [os.environ.get(name, "") for name in ("SM_NUM_GPUS", "SM_NUM_NEURONS")]
    counts = [int(text) for text in counts_text if text.isdigit()]
    device_count = sum(re.match(r"nvidia[0-9]+$", name) is not None for name in os.listdir("/dev"))
    return max([*counts, 1] if counts else [device_count, 1])


def build_torchrun_command(job_hosts: JobHosts, procs: int) -> List[str]:
    """Return the torchrun command with its rendezvous options."""
    nodes = len(job_hosts.hosts)
    words = ["torchrun", "--nnodes", str(nodes), "--nproc_per_node", str(procs)]
    if nodes == 1:
        return [*words, "--standalone"]
    return [
        *words,
        "--node_rank",
        str(job_hosts.node),
        "--master_addr",
        job_hosts.hosts[0],
        "--master_port",
        MASTER_PORT,
    ]


def build_rendezvous_variables(job_hosts: JobHosts) -> Dict[str, str]:
    """Return the variables of the rendezvous."""
    return {"MASTER_ADDR": job_hosts.hosts[0], "MASTER_PORT": MASTER_PORT}


def build_per_node_variables(job_hosts: JobHosts, procs: int) -> Dict[str, str]:
    """Return the variables for a command that starts the node's ranks itself."""
    return {
        "PET_NNODES": str(len(job_hosts.hosts)),
        "PET_NPROC_PER_NODE": str(procs),
        "PET_NODE_RANK": str(job_hosts.node),
        "PET_MASTER_ADDR": job_hosts.hosts[0],
        "PET_MASTER_PORT": MASTER_PORT,
        "NODE_RANK": str(job_hosts.node),
    }


def build_sagemaker_variables(base: str, job_hosts: JobHosts) -> Dict[str, str]:
    """Return SageMaker's variables for scripts, which its toolkit would set."""
    data = os.path.join(base, "input", "data")
    channels = sorted(os.listdir(data)) if os.path.isdir(data) else []
    return {
        "SM_HOSTS": json.dumps(job_hosts.hosts),
        "SM_CURRENT_HOST": job_hosts.host,
        "SM_MODEL_DIR": os.path.join(base, "model"),
        "SM_OUTPUT_DIR": os.path.join(base, "output"),
        "SM_OUTPUT_DATA_DIR": os.path.join(base, "output", "data"),
        "SM_INPUT_DIR": os.path.join(base, "input"),
        "SM_CHANNELS": json.dumps(channels),
        **{f"SM_CHANNEL_{re.sub('[.-]', '_', name).upper()}": os.path.join(data, name) for name in channels},
    }


def start_ranks(command: Sequence[str], job_hosts: JobHosts, procs: int, environment: Mapping[str, str]) -> int:
    """Run the node's ranks. Returns 0, or the exit code of the first failed rank, which stops the others."""
    ranks: List[subprocess.Popen[bytes]] = []
    stop_signals: List[int] = []

    def stop(number: int, _: object) -> None:
        stop_signals.append(number)
        if len(ranks) == procs and len(stop_signals) == 1:
            stop_ranks(ranks)

    signal.signal(signal.SIGTERM, stop)
    for local_rank in range(procs):
        ranks.append(
            subprocess.Popen(command, env={**environment, **build_rank_variables(job_hosts, procs, local_rank)})
        )
        if stop_signals and len(ranks) == procs:
            stop_ranks(ranks)  # forward a SIGTERM that arrived during the starts
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
            stop_ranks(list(running.values()))
    return failed or (128 + stop_signals[0] if stop_signals else 0)


def stop_ranks(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM to the ranks, and SIGKILL after the grace period."""
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
    """Start mpirun on all hosts with SageMaker's toolkit: sagemaker-training 5.1.4, runner.py."""
    try:
        # The image may lack the toolkit, so import it by name.
        entry_point = importlib.import_module("sagemaker_training.entry_point")
        runner = importlib.import_module("sagemaker_training.runner")
    except ImportError:
        sys.exit(
            "launcher mpi needs SageMaker's training toolkit, which this image lacks: pip install sagemaker-training"
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


def build_rank_variables(job_hosts: JobHosts, procs: int, local_rank: int) -> Dict[str, str]:
    """Return the rank and world size variables of a rank."""
    nodes = len(job_hosts.hosts)
    return {
        "RANK": str(job_hosts.node * procs + local_rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(nodes * procs),
        "LOCAL_WORLD_SIZE": str(procs),
        "GROUP_RANK": str(job_hosts.node),
        "GROUP_WORLD_SIZE": str(nodes),
        "NODE_RANK": str(job_hosts.node),
    }


STARTERS = {
    "toolkit": run_as_rank,
    "torchrun": run_torchrun,
    "mpi": run_mpi,
    "direct": run_ranks,
    "perNode": run_per_node,
}
"""Launchers by their names in the settings. The operator refuses other names (`supports_sagemaker`)."""


if __name__ == "__main__":
    main(sys.argv[1:])

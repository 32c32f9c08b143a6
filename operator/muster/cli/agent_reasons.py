"""Why the agent sets each variable, and why it starts a launcher with each option; every one has its own reason."""

from __future__ import annotations

from muster_worker.check_figures import CHECK_SECONDS
from muster_worker.library_interfaces import OF_LAUNCHERS, OF_RANKS
from muster_worker.memory_reading import VARIABLE as MEMORY_VARIABLE
from muster_worker.mpi_settings import SETTINGS
from muster_worker.node_file import FIRST, HERE, NODE, NODES, PROCS_PER_NODE

_WORLD = ("spec.nodes, procsPerNode", "the rank's place among all ranks")
_MEETING = ("agent", "node 0's address, known when all nodes are ready")
_LAUNCHER = ("spec.nodes, procsPerNode", "torchrun's own names, for a launcher that the command starts")
_OWN = ("muster", "the rank's wrapper finds its agent through it")
_HOOK = ("muster", "counts the steps of a Python rank; removed from its environment before your first line")
_SAGEMAKER = ("muster", "SageMaker's variable, so that scripts for SageMaker run unchanged")

_VARIABLES = {
    "PYTHONUNBUFFERED": ("muster", "otherwise a rank's last lines would be lost in a buffer when a signal ends it"),
    "OMP_NUM_THREADS": ("agent", "the node's cores divided by its ranks: more threads than cores slow down all ranks"),
    "RANK": _WORLD,
    "LOCAL_RANK": _WORLD,
    "WORLD_SIZE": _WORLD,
    "LOCAL_WORLD_SIZE": _WORLD,
    "GROUP_RANK": _WORLD,
    "GROUP_WORLD_SIZE": _WORLD,
    "NODE_RANK": _WORLD,
    "MUSTER_RANK": _WORLD,
    "MUSTER_LOCAL_RANK": _WORLD,
    "MASTER_ADDR": _MEETING,
    "MASTER_PORT": _MEETING,
    "PET_MASTER_ADDR": _MEETING,
    "PET_MASTER_PORT": _MEETING,
    "PET_NNODES": _LAUNCHER,
    "PET_NPROC_PER_NODE": _LAUNCHER,
    "PET_NODE_RANK": _LAUNCHER,
    "PYTHON_EXEC": ("muster", "launchers start their ranks through it, each in its own wrapper"),
    "MUSTER_AGENT_SOCKET": _OWN,
    "MUSTER_ARCHIVE": _OWN,
    "MUSTER_PYTHON": _OWN,
    "MUSTER_RUN_DIR": _OWN,
    "MUSTER_CHECKPOINT_DIR": ("spec.checkpoint", "the folder for checkpoints, from which ranks resume"),
    "MUSTER_HOOK": _HOOK,
    "PYTHONPATH": _HOOK,
    "SM_HPS": ("spec.hyperparameters", "all hyperparameters, as SageMaker sets them"),
    "SM_USER_ARGS": ("spec.hyperparameters", "as command-line arguments, as SageMaker sets them"),
    "SM_CHANNELS": ("spec.inputs", "the names of the channels, as SageMaker sets them"),
    "SM_INPUT_DATA_CONFIG": ("spec.inputs", "a description of the channels, as SageMaker sets it"),
}

_INTERFACES = {
    setting.name: ("spec.network.interface", f"{setting.why} ({setting.source})")
    for setting in (*OF_RANKS, *OF_LAUNCHERS)
}

_NODE_FILE = ("muster", "the file with node-specific values: mpirun may send its own environment to all ranks")
_ASKED = ("spec.nodes, procsPerNode", "the rank's wrapper compares mpirun's world size with this one")
_UNREADABLE = (
    "agent",
    "set only if the container runtime forbids ranks to read each other's memory: MPICH 5 would abort",
)
_MPI = {
    MEMORY_VARIABLE: _UNREADABLE,
    HERE: _NODE_FILE,
    FIRST: _NODE_FILE,
    NODE: ("agent", "the rank's wrapper compares the node that mpirun chose with its own"),
    NODES: _ASKED,
    PROCS_PER_NODE: _ASKED,
    **{setting.name: ("spec.launcher.mpi", f"{setting.why} ({setting.source})") for setting in SETTINGS},
}

_BEGINNINGS = (
    ("SM_HP_", ("spec.hyperparameters", "one hyperparameter, as SageMaker sets it")),
    ("SM_CHANNEL_", ("spec.inputs", "the channel's folder, as SageMaker sets it")),
    ("SM_", _SAGEMAKER),
)

_PARTS = {
    "network check": ("spec.network.check", "it names a node that would slow down all others"),
    "launcher": ("spec.launcher.torchrun", "the Python of the command has the script's torch"),
    "--nnodes": ("spec.nodes", "the number of nodes"),
    "--nproc_per_node": ("spec.procsPerNode", "Auto: one rank for each of the node's devices, else 1"),
    "--node_rank": ("muster", "the node's rank, so that rank numbers stay the same after a restart"),
    "--master_addr": _MEETING,
    "--master_port": _MEETING,
    "--rdzv_id": ("muster", "ranks of another attempt can't join this one"),
    "--max_restarts": ("muster", "the operator decides about restarts, for all nodes at once"),
    "mpirun": ("spec.launcher.mpi", "the implementation; with Auto node 0 runs the mpirun on PATH once to find out"),
    "--hostfile": ("muster", "the job's nodes, by their addresses"),
    "-f": ("muster", "the job's nodes, by their addresses"),
    "-np": ("spec.nodes, procsPerNode", "the world size"),
    "-n": ("spec.nodes, procsPerNode", "the world size"),
    "-ppn": ("spec.procsPerNode", "ranks are numbered node by node"),
    "--map-by": ("spec.procsPerNode", "ranks are numbered node by node"),
    "-genvnone": ("muster", "ranks keep their own node's variables; Hydra would send node 0's to all"),
    "--no_python": ("muster", "each rank starts under muster's wrapper, whatever its language"),
    "wrapper": ("muster", "sees each rank's start, exit code, signal and last lines"),
    "arguments": ("spec.hyperparameters", "appended to spec.command, as SageMaker does"),
}


CHECK_VALUE = f"before the ranks start, at most {CHECK_SECONDS:.0f} s"
"""How the network check appears among the parts of a launch."""


def variable_reason(name: str) -> tuple[str, str]:
    """The source of a variable's value, and why the agent sets it. Raises `KeyError` for one that it never sets."""
    for beginning, reason in _BEGINNINGS:
        if name not in _VARIABLES and name.startswith(beginning):
            return reason
    return {**_VARIABLES, **_INTERFACES, **_MPI}[name]


def part_reason(part: str) -> tuple[str, str]:
    """The source of a part of a node's command, and why. Raises `KeyError` for one that muster never adds."""
    return _PARTS[part]

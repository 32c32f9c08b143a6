"""Why the agent sets a variable, and why it starts a launcher with an option; one answer for each, and no default."""

from __future__ import annotations

from muster_worker.machine.memory_reading import VARIABLE as MEMORY_VARIABLE
from muster_worker.mpi.mpirun_variables import SETTINGS
from muster_worker.mpi.node_file import FIRST, HERE, NODE, NODES, PROCS_PER_NODE
from muster_worker.network.check_figures import CHECK_SECONDS
from muster_worker.network.library_interfaces import OF_LAUNCHERS, OF_RANKS

_WORLD = ("spec.nodes, procsPerNode", "the rank's place among all ranks")
_MEETING = ("agent", "where node 0 is met, known when all nodes are ready")
_LAUNCHER = ("spec.nodes, procsPerNode", "torchrun's own names, for a launcher that the command starts")
_OWN = ("muster", "the rank's wrapper finds its agent by it")
_HOOK = ("muster", "counts the steps of a Python rank; gone from its environment before your first line")
_SAGEMAKER = ("muster", "what SageMaker tells a script, so that its scripts run unchanged")

_VARIABLES = {
    "PYTHONUNBUFFERED": ("muster", "a rank's last words would be lost in a buffer when a signal ends it"),
    "OMP_NUM_THREADS": ("agent", "the node's cores are shared among its ranks; all taking all slows all down"),
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
    "PYTHON_EXEC": ("muster", "launchers start their ranks through it, each under a wrapper of its own"),
    "MUSTER_AGENT_SOCKET": _OWN,
    "MUSTER_ARCHIVE": _OWN,
    "MUSTER_PYTHON": _OWN,
    "MUSTER_RUN_DIR": _OWN,
    "MUSTER_CHECKPOINT_DIR": ("spec.checkpoint", "where snapshots go and are resumed from"),
    "MUSTER_HOOK": _HOOK,
    "PYTHONPATH": _HOOK,
    "SM_HPS": ("spec.hyperparameters", "all of them, as SageMaker gives them"),
    "SM_USER_ARGS": ("spec.hyperparameters", "as words of a command line, as SageMaker gives them"),
    "SM_CHANNELS": ("spec.inputs", "the names of the channels, as SageMaker gives them"),
    "SM_INPUT_DATA_CONFIG": ("spec.inputs", "what SageMaker says of the channels"),
}

_INTERFACES = {
    setting.name: ("spec.network.interface", f"{setting.why} ({setting.source})")
    for setting in (*OF_RANKS, *OF_LAUNCHERS)
}

_NODE_FILE = ("muster", "what differs between nodes is read from it: mpirun may send its own environment to all ranks")
_ASKED = ("spec.nodes, procsPerNode", "the rank's wrapper compares the world that mpirun gave it with this one")
_UNREADABLE = (
    "agent",
    "where the container runtime forbids ranks to read each other's memory, MPICH 5 would abort; else it is unset",
)
_MPI = {
    MEMORY_VARIABLE: _UNREADABLE,
    HERE: _NODE_FILE,
    FIRST: _NODE_FILE,
    NODE: ("agent", "the rank's wrapper compares the node that mpirun put it on with its own"),
    NODES: _ASKED,
    PROCS_PER_NODE: _ASKED,
    **{setting.name: ("spec.launcher.mpi", f"{setting.why} ({setting.source})") for setting in SETTINGS},
}

_BEGINNINGS = (
    ("SM_HP_", ("spec.hyperparameters", "one of them, as SageMaker gives it")),
    ("SM_CHANNEL_", ("spec.inputs", "the channel's folder, as SageMaker gives it")),
    ("SM_", _SAGEMAKER),
)

_PARTS = {
    "network check": ("spec.network.check", "a node that slows all others is named before hours are lost"),
    "launcher": ("spec.launcher.torchrun", "the command's own Python has the torch that the script wants"),
    "--nnodes": ("spec.nodes", "the size of the world"),
    "--nproc_per_node": ("spec.procsPerNode", "Auto: one rank for each of the node's devices, else 1"),
    "--node_rank": ("muster", "the node's number, so that ranks keep their places"),
    "--master_addr": _MEETING,
    "--master_port": _MEETING,
    "--rdzv_id": ("muster", "ranks of another start of the gang can't join this one"),
    "--max_restarts": ("muster", "who starts again is decided by the operator, for all nodes at once"),
    "mpirun": ("spec.launcher.mpi", "whose it is: with Auto the one on PATH is asked once, on node 0"),
    "--hostfile": ("muster", "the gang's nodes, by the addresses where they meet"),
    "-f": ("muster", "the gang's nodes, by the addresses where they meet"),
    "-np": ("spec.nodes, procsPerNode", "the size of the world"),
    "-n": ("spec.nodes, procsPerNode", "the size of the world"),
    "-ppn": ("spec.procsPerNode", "ranks are numbered node by node"),
    "--map-by": ("spec.procsPerNode", "ranks are numbered node by node"),
    "-genvnone": ("muster", "ranks see their own node's variables, not node 0's, which Hydra would send to all"),
    "--no_python": ("muster", "each rank starts under muster's wrapper, whatever its language"),
    "wrapper": ("muster", "sees each rank's start, exit code, signal and last lines"),
    "arguments": ("spec.hyperparameters", "appended to spec.command, as SageMaker does"),
}


CHECK_VALUE = f"before the ranks start, at most {CHECK_SECONDS:.0f} s"
"""How a network check shows among the parts of a launch."""


def variable_reason(name: str) -> tuple[str, str]:
    """Where a variable's value comes from, and why it is set. Raises `KeyError` for one that the agent never sets."""
    for beginning, reason in _BEGINNINGS:
        if name not in _VARIABLES and name.startswith(beginning):
            return reason
    return {**_VARIABLES, **_INTERFACES, **_MPI}[name]


def part_reason(part: str) -> tuple[str, str]:
    """The same of a part of a node's command. Raises `KeyError` for one that muster never adds."""
    return _PARTS[part]

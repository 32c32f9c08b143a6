"""`mpi`: one mpirun on node 0 starts the ranks of all nodes. See `muster_worker/mpi`."""

from __future__ import annotations

from typing import ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import Credentials, Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import FindProgram, Launcher, LauncherIO, ProcessSpec, Reason
from muster_worker.launchers.environment import RENDEZVOUS_REASON, WORLD_REASON, NodeContext
from muster_worker.machine.memory_reading import CMA_VARIABLE as MEMORY_VARIABLE
from muster_worker.mpi import node_file
from muster_worker.mpi.environment import (
    build_daemon_environment,
    build_mpirun_environment,
    build_node_variables,
    build_world,
)
from muster_worker.mpi.implementations import PROGRAM, build_launch_command, is_user_mpirun
from muster_worker.mpi.mpirun_variables import SETTINGS
from muster_worker.mpi.node import MpiWorld
from muster_worker.mpi.world_variables import Position, describe_mismatch, describe_placement_mismatch

_EXAMPLE_MASTER = ("ADDRESS_0", "29501")
_NODE_FILE = ("muster", "the file with node-specific values: mpirun may send its own environment to all ranks")
_MEMORY_UNREADABLE = (
    "agent",
    "set only if the container runtime forbids ranks to read each other's memory: MPICH 5 would abort",
)
_WORLD_CHECK = ("spec.nodes, procsPerNode", "the rank's wrapper compares mpirun's world size with this one")
_HOST_FILE = ("muster", "the job's nodes, by their addresses")
_WORLD_SIZE = ("spec.nodes, procsPerNode", "the world size")
_RANK_ORDER = ("spec.procsPerNode", "ranks are numbered node by node")


class MpiLauncher(Launcher):
    """Starts mpirun with the wrapped command, or the command itself if it is an mpirun."""

    needs_own_hosts = True
    program_of_first_node = PROGRAM

    variables: ClassVar[Mapping[str, Reason]] = {
        **dict.fromkeys(("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"), WORLD_REASON),
        **dict.fromkeys(("MASTER_ADDR", "MASTER_PORT"), RENDEZVOUS_REASON),
        MEMORY_VARIABLE: _MEMORY_UNREADABLE,
        node_file.NODE_FILE_VARIABLE: _NODE_FILE,
        node_file.FIRST_NODE_FILE_VARIABLE: _NODE_FILE,
        node_file.NODE_VARIABLE: ("agent", "the rank's wrapper compares the node that mpirun chose with its own"),
        node_file.NODES_VARIABLE: _WORLD_CHECK,
        node_file.PROCS_PER_NODE_VARIABLE: _WORLD_CHECK,
        **{setting.name: ("spec.launcher.mpi", f"{setting.reason} ({setting.source})") for setting in SETTINGS},
    }

    options: ClassVar[Mapping[str, Reason]] = {
        "mpirun": (
            "spec.launcher.mpi",
            "the implementation; with Auto node 0 runs the mpirun on PATH once to detect it",
        ),
        "--hostfile": _HOST_FILE,
        "-f": _HOST_FILE,
        "-np": _WORLD_SIZE,
        "-n": _WORLD_SIZE,
        "-ppn": _RANK_ORDER,
        "--map-by": _RANK_ORDER,
        "-genvnone": ("muster", "ranks keep their own node's variables; Hydra would send node 0's to all"),
    }

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        return ()  # MpiWorld starts mpirun when the other nodes are reachable

    def join_world(
        self,
        context: NodeContext,
        base_environment: Mapping[str, str],
        credentials: Optional[Credentials],
        io: LauncherIO,
    ) -> Optional[MpiWorld]:
        return MpiWorld(context, base_environment, credentials, io)

    def describe_mismatch(self, context: NodeContext, rank: int, world: int, local_world: int) -> Optional[str]:
        if not world or not local_world:
            return None
        procs = context.plan.procs_per_node
        return describe_mismatch(world, local_world, context.plan.nodes, procs) or describe_placement_mismatch(
            rank, context.node, procs
        )

    def build_example(self, context: NodeContext, user_variables: Mapping[str, str]) -> ProcessSpec:
        """Show mpirun on node 0 (Open MPI for Auto), and no command on other nodes."""
        ranks = {**user_variables, **build_node_variables(user_variables, context), **_build_rank_variables(context)}
        if context.node != 0:
            return ProcessSpec("", (), {**build_daemon_environment(user_variables, context), **ranks})
        # Most images run as root, which needs two more variables.
        environment = {**build_mpirun_environment(user_variables, context, is_root=True), **ranks}
        if is_user_mpirun(context.plan):
            return ProcessSpec(PROGRAM, commands.build_user_command(context.plan), environment)
        rank = commands.build_wrapper_command(context, f"--master={':'.join(_EXAMPLE_MASTER)}")
        command = build_launch_command(
            _choose_implementation(context.plan), build_world(context), context.plan.launcher_args, rank
        )
        return ProcessSpec(PROGRAM, command, environment)

    def split_command(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        if not words or is_user_mpirun(plan):
            return (), words
        wrapper = words.index("-I") - 1
        implementation_text = (
            f"{plan.mpi}, here as {_choose_implementation(plan)}" if plan.mpi == Mpi.AUTO else plan.mpi
        )
        options: List[Tuple[str, str]] = [("mpirun", implementation_text)]
        for word in words[1 : wrapper - len(plan.launcher_args)]:
            if word.startswith("-"):
                options.append((word, "set"))
            else:
                options[-1] = (options[-1][0], word)
        return tuple(options), words[wrapper:]


def _choose_implementation(plan: Plan) -> str:
    return Mpi.OPEN_MPI if plan.mpi == Mpi.AUTO else plan.mpi


def _build_rank_variables(context: NodeContext) -> Mapping[str, str]:
    """Return the variables that a rank's wrapper adds. A user's own mpirun starts ranks without wrappers."""
    plan = context.plan
    if is_user_mpirun(plan):
        return {}
    position = Position(context.node * plan.procs_per_node, plan.world_size, 0, plan.procs_per_node)
    return {**position.build_variables(), "MASTER_ADDR": _EXAMPLE_MASTER[0], "MASTER_PORT": _EXAMPLE_MASTER[1]}


LAUNCHER = MpiLauncher()

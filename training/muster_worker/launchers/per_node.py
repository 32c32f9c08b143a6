"""`perNode`: the job's command runs once per node and starts the ranks itself."""

from __future__ import annotations

import os
from typing import ClassVar, Dict, Mapping, Sequence

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import FindProgram, Launcher, ProcessSpec, Reason
from muster_worker.launchers.environment import RENDEZVOUS_REASON, WORLD_REASON, NodeContext
from muster_worker.machine.executable import write_executable
from muster_worker.rank import hook_environment

_PYTHON_EXEC_NAME = "python-exec"

_TORCHRUN_NAMES = ("spec.nodes, procsPerNode", "torchrun's own names, for a launcher that the command starts")


class PerNode(Launcher):
    """Sets the variables that torchrun, accelerate and deepspeed need for a rendezvous."""

    variables: ClassVar[Mapping[str, Reason]] = {
        "NODE_RANK": WORLD_REASON,
        "MUSTER_RANK": WORLD_REASON,
        "MUSTER_LOCAL_RANK": WORLD_REASON,
        "MASTER_ADDR": RENDEZVOUS_REASON,
        "MASTER_PORT": RENDEZVOUS_REASON,
        "PET_MASTER_ADDR": RENDEZVOUS_REASON,
        "PET_MASTER_PORT": RENDEZVOUS_REASON,
        "PET_NNODES": _TORCHRUN_NAMES,
        "PET_NPROC_PER_NODE": _TORCHRUN_NAMES,
        "PET_NODE_RANK": _TORCHRUN_NAMES,
        "PYTHON_EXEC": ("muster", "launchers start their ranks through it, each in its own wrapper"),
    }

    def prepare(self, context: NodeContext) -> None:
        write_python_exec(context.run_dir, context.archive, context.python)

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        variables = _build_environment(environment, context)
        if context.plan.procs_per_node == 1:
            return (ProcessSpec("command", commands.build_wrapper_command(context), variables, represents_rank=True),)
        # For launchers that ignore PYTHON_EXEC: the hook detects their ranks.
        variables = hook_environment.add_hook(variables, context.archive, self.choose_hook_scope(context.plan))
        return (ProcessSpec("command", commands.build_user_command(context.plan), variables, represents_rank=True),)

    def choose_hook_scope(self, plan: Plan) -> str:
        return hook_environment.SCOPE_NODE if plan.procs_per_node > 1 else hook_environment.SCOPE_RANK


def _build_environment(node: Mapping[str, str], context: NodeContext) -> Dict[str, str]:
    plan = context.plan
    environment = {
        **node,
        "PET_NNODES": str(plan.nodes),
        "PET_NPROC_PER_NODE": str(plan.procs_per_node),
        "PET_NODE_RANK": str(context.node),
        "PET_MASTER_ADDR": context.master.address,
        "PET_MASTER_PORT": str(context.master.port),
        "NODE_RANK": str(context.node),
        "MASTER_ADDR": context.master.address,
        "MASTER_PORT": str(context.master.port),
    }
    if plan.procs_per_node == 1:
        # The command is the rank until a child reports to be the rank. Don't set RANK: scripts conclude from it that a
        # launcher has started them.
        environment["MUSTER_RANK"] = str(context.node)
        environment["MUSTER_LOCAL_RANK"] = "0"
    environment.setdefault("PYTHON_EXEC", get_python_exec_path(context.run_dir))
    return environment


def get_python_exec_path(run_dir: str) -> str:
    """Return the value of PYTHON_EXEC: a program that starts a rank's wrapper. torchrun runs it instead of Python."""
    return os.path.join(run_dir, _PYTHON_EXEC_NAME)


def write_python_exec(run_dir: str, archive: str, python: str) -> str:
    """Write the executable into `run_dir` and return its path. Raises `OSError`.

    `archive` is the agent's zipapp and `python` its interpreter.
    """
    executable = get_python_exec_path(run_dir)
    write_executable(executable, python, archive, ("rank", "--python-of-parent", "--"))
    return executable


LAUNCHER = PerNode()

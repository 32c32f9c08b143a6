"""`perNode`: the job's command runs once a node and starts its ranks itself."""

from __future__ import annotations

from typing import ClassVar, Dict, Mapping, Sequence

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands, python_exec
from muster_worker.launchers.base import Launcher, Reason, Start, Which
from muster_worker.launchers.environment import MEETING, WORLD, Place
from muster_worker.rank import hook_environment

_TORCHRUN_NAMES = ("spec.nodes, procsPerNode", "torchrun's own names, for a launcher that the command starts")


class PerNode(Launcher):
    """The command finds enough for torchrun, accelerate and deepspeed to find each other."""

    variables: ClassVar[Mapping[str, Reason]] = {
        "NODE_RANK": WORLD,
        "MUSTER_RANK": WORLD,
        "MUSTER_LOCAL_RANK": WORLD,
        "MASTER_ADDR": MEETING,
        "MASTER_PORT": MEETING,
        "PET_MASTER_ADDR": MEETING,
        "PET_MASTER_PORT": MEETING,
        "PET_NNODES": _TORCHRUN_NAMES,
        "PET_NPROC_PER_NODE": _TORCHRUN_NAMES,
        "PET_NODE_RANK": _TORCHRUN_NAMES,
        "PYTHON_EXEC": ("muster", "launchers start their ranks through it, each in its own wrapper"),
    }

    def prepare(self, place: Place) -> None:
        python_exec.write_python_exec(place.run, place.archive, place.python)

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        variables = _environment(node, place)
        if place.plan.procs_per_node == 1:
            return (Start("command", commands.wrapper(place), variables, speaks_for_rank=True),)
        # launchers that ignore PYTHON_EXEC are seen by the hook in the ranks that they start
        variables = hook_environment.with_hook(variables, place.archive, self.hook_scope(place.plan))
        return (Start("command", commands.user_command(place.plan), variables, speaks_for_rank=True),)

    def hook_scope(self, plan: Plan) -> str:
        return hook_environment.SCOPE_NODE if plan.procs_per_node > 1 else hook_environment.SCOPE_RANK


def _environment(node: Mapping[str, str], place: Place) -> Dict[str, str]:
    plan = place.plan
    environment = {
        **node,
        "PET_NNODES": str(plan.nodes),
        "PET_NPROC_PER_NODE": str(plan.procs_per_node),
        "PET_NODE_RANK": str(place.node),
        "PET_MASTER_ADDR": place.master.address,
        "PET_MASTER_PORT": str(place.master.port),
        "NODE_RANK": str(place.node),
        "MASTER_ADDR": place.master.address,
        "MASTER_PORT": str(place.master.port),
    }
    if plan.procs_per_node == 1:
        # The command itself counts as the rank until a process inside says that it is the one. Its own RANK stays
        # unset: scripts take a RANK in the environment for the sign of a launcher.
        environment["MUSTER_RANK"] = str(place.node)
        environment["MUSTER_LOCAL_RANK"] = "0"
    environment.setdefault("PYTHON_EXEC", python_exec.path(place.run))
    return environment


LAUNCHER = PerNode()

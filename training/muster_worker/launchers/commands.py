"""The command lines that start a node's ranks. Pure: what is on PATH is asked of the caller."""

from __future__ import annotations

import os.path
import re
from typing import Callable, Optional, Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers.environment import Place
from muster_worker.sagemaker.arguments import to_arguments

Which = Callable[[str], Optional[str]]
"""The full path of a command on the ranks' PATH, None when it isn't there."""

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?t?")


def user_command(plan: Plan) -> Tuple[str, ...]:
    """What the job's owner wants to run: the command and its hyperparameters."""
    return plan.command + to_arguments(plan.hyperparameters)


def wrapper(place: Place) -> Tuple[str, ...]:
    """A rank under the wrapper that tells the agent of its start and end."""
    return (place.python, "-I", "-S", place.archive, "rank", "--", *user_command(place.plan))


def mpi_rank(place: Place, master: str) -> Tuple[str, ...]:
    """The same for a rank that mpirun starts. `master` is where torch.distributed may meet, ADDRESS:PORT."""
    wrapped = ("rank", f"--master={master}", "--", *user_command(place.plan))
    return (place.python, "-I", "-S", place.archive, *wrapped)


def torchrun(place: Place, attempt: int, which: Which) -> Tuple[str, ...]:
    """torchrun around the wrapped command: static rendezvous on node 0, no restarts of its own."""
    plan = place.plan
    # underscores: the spelling that every release of torchrun understands
    return (
        *_torchrun_program(plan.command[0], which),
        *("--nnodes", str(plan.nodes), "--nproc_per_node", str(plan.procs_per_node), "--node_rank", str(place.node)),
        *("--master_addr", place.master.address, "--master_port", str(place.master.port)),
        *("--rdzv_id", f"{plan.job_uid}-{attempt}", "--max_restarts", "0"),
        *plan.launcher_args,
        "--no_python",
        *wrapper(place),
    )


def _torchrun_program(program: str, which: Which) -> Tuple[str, ...]:
    # the python that runs the script has the torch that the script wants
    if _PYTHON.fullmatch(os.path.basename(program)):
        return (program, "-m", "torch.distributed.run")
    path = which("torchrun")
    if path is not None:
        return (path,)
    return ("python3", "-m", "torch.distributed.run")

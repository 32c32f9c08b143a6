"""`torchrun`: one torchrun per node starts and watches the node's ranks. Pure."""

from __future__ import annotations

import os.path
import re
import shlex
from typing import ClassVar, Dict, Mapping, Sequence, Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import Launcher, Reason, Start, Which
from muster_worker.launchers.environment import RENDEZVOUS, Place

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?t?")


class Torchrun(Launcher):
    """Starts torchrun with the wrapped command: static rendezvous on node 0, no restarts by torchrun."""

    options: ClassVar[Mapping[str, Reason]] = {
        "launcher": ("spec.launcher.torchrun", "the Python of the command has the script's torch"),
        "--nnodes": ("spec.nodes", "the number of nodes"),
        "--nproc_per_node": ("spec.procsPerNode", "Auto: one rank for each of the node's devices, else 1"),
        "--node_rank": ("muster", "the node's rank, so that rank numbers stay the same after a restart"),
        "--master_addr": RENDEZVOUS,
        "--master_port": RENDEZVOUS,
        "--rdzv_id": ("muster", "ranks of another attempt can't join this one"),
        "--max_restarts": ("muster", "the operator decides about restarts, for all nodes at once"),
        "--no_python": ("muster", "each rank starts under muster's wrapper, whatever its language"),
    }

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        plan = place.plan
        # All releases of torchrun accept underscores in options.
        command = (
            *_program(plan.command[0], which),
            *("--nnodes", str(plan.nodes), "--nproc_per_node", str(plan.procs_per_node)),
            *("--node_rank", str(place.node)),
            *("--master_addr", place.master.address, "--master_port", str(place.master.port)),
            *("--rdzv_id", f"{plan.job_uid}-{place.attempt}", "--max_restarts", "0"),
            *plan.launcher_args,
            "--no_python",
            *commands.wrapper(place),
        )
        return (Start("torchrun", command, node, forwards_signals=True),)

    def split(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        first, last = words.index("--nnodes"), words.index("--no_python")
        options = words[first : last - len(plan.launcher_args)]
        pairs = zip(options[::2], options[1::2])
        return (("launcher", shlex.join(words[:first])), *pairs, ("--no_python", "set")), words[last + 1 :]


def _program(command: str, which: Which) -> Tuple[str, ...]:
    # The Python of the command has the script's torch.
    if _PYTHON.fullmatch(os.path.basename(command)):
        return (command, "-m", "torch.distributed.run")
    path = which("torchrun")
    if path is not None:
        return (path,)
    return ("python3", "-m", "torch.distributed.run")


LAUNCHER = Torchrun()

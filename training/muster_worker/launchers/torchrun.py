"""`torchrun`: one torchrun per node starts the node's ranks. Pure."""

from __future__ import annotations

import os.path
import re
import shlex
from typing import ClassVar, Dict, Mapping, Sequence, Tuple

from muster_worker.contract.schema import Plan
from muster_worker.launchers import commands
from muster_worker.launchers.base import FindProgram, Launcher, ProcessSpec, Reason
from muster_worker.launchers.environment import RENDEZVOUS_REASON, NodeContext

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?t?")


class Torchrun(Launcher):
    """Starts torchrun with the wrapped command: static rendezvous on node 0, no restarts by torchrun."""

    options: ClassVar[Mapping[str, Reason]] = {
        "launcher": ("spec.launcher.torchrun", "the Python of the command has the script's torch"),
        "--nnodes": ("spec.nodes", "the number of nodes"),
        "--nproc_per_node": ("spec.procsPerNode", "Auto: one rank for each of the node's devices, else 1"),
        "--node_rank": ("muster", "the node's rank, so that rank numbers stay the same after a restart"),
        "--master_addr": RENDEZVOUS_REASON,
        "--master_port": RENDEZVOUS_REASON,
        "--rdzv_id": ("muster", "ranks of another attempt can't join this one"),
        "--max_restarts": ("muster", "the operator decides about restarts, for all nodes at once"),
        "--no_python": ("muster", "muster's wrapper starts each rank, in every language"),
    }

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        plan = context.plan
        # All releases of torchrun accept underscores in options.
        program = _find_torchrun(plan.command[0], find_program)
        if context.fork_server is not None and len(program) > 1:
            program = (
                *commands.build_agent_command(context, "launcher"),
                context.fork_server.socket_path,
                "--",
                *program,
            )
        command = (
            *program,
            *("--nnodes", str(plan.nodes), "--nproc_per_node", str(plan.procs_per_node)),
            *("--node_rank", str(context.node)),
            *("--master_addr", context.master.address, "--master_port", str(context.master.port)),
            *("--rdzv_id", f"{plan.job_uid}-{context.attempt}", "--max_restarts", "0"),
            *plan.launcher_args,
            "--no_python",
            *commands.build_wrapper_command(context),
        )
        return (
            ProcessSpec(
                "torchrun",
                command,
                environment,
                forwards_signals=True,
                # With options of the user, such as --tee, it may still copy output of the ranks.
                can_be_killed_after_ranks=not plan.launcher_args,
            ),
        )

    def split_command(self, plan: Plan, words: Tuple[str, ...]) -> Tuple[Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
        first, last = words.index("--nnodes"), words.index("--no_python")
        options = words[first : last - len(plan.launcher_args)]
        pairs = zip(options[::2], options[1::2])
        return (("launcher", shlex.join(words[:first])), *pairs, ("--no_python", "set")), words[last + 1 :]


def _find_torchrun(command: str, find_program: FindProgram) -> Tuple[str, ...]:
    # Use the Python of the command, because it has the script's torch.
    if _PYTHON.fullmatch(os.path.basename(command)):
        return (command, "-m", "torch.distributed.run")
    path = find_program("torchrun")
    if path is not None:
        return (path,)
    return ("python3", "-m", "torch.distributed.run")


LAUNCHER = Torchrun()

"""`direct`: the agent itself starts the node's ranks. Pure."""

from __future__ import annotations

from typing import ClassVar, Dict, Mapping, Sequence

from muster_worker.launchers import commands
from muster_worker.launchers.base import FindProgram, Launcher, ProcessSpec, Reason
from muster_worker.launchers.environment import RENDEZVOUS_REASON, WORLD_REASON, NodeContext


class Direct(Launcher):
    """Starts ranks with the variables that torchrun would set."""

    starts_each_rank = True

    variables: ClassVar[Mapping[str, Reason]] = {
        "RANK": WORLD_REASON,
        "LOCAL_RANK": WORLD_REASON,
        "WORLD_SIZE": WORLD_REASON,
        "LOCAL_WORLD_SIZE": WORLD_REASON,
        "GROUP_RANK": WORLD_REASON,
        "GROUP_WORLD_SIZE": WORLD_REASON,
        "NODE_RANK": WORLD_REASON,
        "MASTER_ADDR": RENDEZVOUS_REASON,
        "MASTER_PORT": RENDEZVOUS_REASON,
    }

    def list_processes(
        self, context: NodeContext, environment: Dict[str, str], find_program: FindProgram
    ) -> Sequence[ProcessSpec]:
        command = commands.build_wrapper_command(context)
        return tuple(
            _build_rank_process(context, command, environment, local_rank)
            for local_rank in range(context.plan.procs_per_node)
        )


def _build_rank_process(
    context: NodeContext, command: Sequence[str], environment: Mapping[str, str], local_rank: int
) -> ProcessSpec:
    plan = context.plan
    rank = context.node * plan.procs_per_node + local_rank
    rank_environment = {
        **environment,
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(plan.world_size),
        "LOCAL_WORLD_SIZE": str(plan.procs_per_node),
        "GROUP_RANK": str(context.node),
        "GROUP_WORLD_SIZE": str(plan.nodes),
        "NODE_RANK": str(context.node),
        "MASTER_ADDR": context.master.address,
        "MASTER_PORT": str(context.master.port),
    }
    return ProcessSpec(f"rank {rank}", command, rank_environment, rank)


LAUNCHER = Direct()

"""`direct`: the agent itself starts the node's ranks. Pure."""

from __future__ import annotations

from typing import ClassVar, Dict, Mapping, Sequence

from muster_worker.launchers import commands
from muster_worker.launchers.base import Launcher, Reason, Start, Which
from muster_worker.launchers.environment import RENDEZVOUS, WORLD, Place


class Direct(Launcher):
    """Starts ranks with the variables that torchrun would set."""

    starts_each_rank = True

    variables: ClassVar[Mapping[str, Reason]] = {
        "RANK": WORLD,
        "LOCAL_RANK": WORLD,
        "WORLD_SIZE": WORLD,
        "LOCAL_WORLD_SIZE": WORLD,
        "GROUP_RANK": WORLD,
        "GROUP_WORLD_SIZE": WORLD,
        "NODE_RANK": WORLD,
        "MASTER_ADDR": RENDEZVOUS,
        "MASTER_PORT": RENDEZVOUS,
    }

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        command = commands.wrapper(place)
        return tuple(_rank_start(place, command, node, local_rank) for local_rank in range(place.plan.procs_per_node))


def _rank_start(place: Place, command: Sequence[str], node: Mapping[str, str], local_rank: int) -> Start:
    plan = place.plan
    rank = place.node * plan.procs_per_node + local_rank
    environment = {
        **node,
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(plan.world_size),
        "LOCAL_WORLD_SIZE": str(plan.procs_per_node),
        "GROUP_RANK": str(place.node),
        "GROUP_WORLD_SIZE": str(plan.nodes),
        "NODE_RANK": str(place.node),
        "MASTER_ADDR": place.master.address,
        "MASTER_PORT": str(place.master.port),
    }
    return Start(f"rank {rank}", command, environment, rank)


LAUNCHER = Direct()

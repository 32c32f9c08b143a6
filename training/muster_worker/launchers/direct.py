"""`direct`: the agent starts the node's ranks itself. Pure."""

from __future__ import annotations

from typing import ClassVar, Dict, Mapping, Sequence

from muster_worker.launchers import commands
from muster_worker.launchers.base import Launcher, Reason, Start, Which
from muster_worker.launchers.environment import MEETING, WORLD, Place


class Direct(Launcher):
    """Ranks with the variables that torchrun would set."""

    starts_each_rank = True

    variables: ClassVar[Mapping[str, Reason]] = {
        "RANK": WORLD,
        "LOCAL_RANK": WORLD,
        "WORLD_SIZE": WORLD,
        "LOCAL_WORLD_SIZE": WORLD,
        "GROUP_RANK": WORLD,
        "GROUP_WORLD_SIZE": WORLD,
        "NODE_RANK": WORLD,
        "MASTER_ADDR": MEETING,
        "MASTER_PORT": MEETING,
    }

    def starts(self, place: Place, node: Dict[str, str], which: Which) -> Sequence[Start]:
        command = commands.wrapper(place)
        return tuple(_rank(place, command, node, local_rank) for local_rank in range(place.plan.procs_per_node))


def _rank(place: Place, command: Sequence[str], node: Mapping[str, str], local_rank: int) -> Start:
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

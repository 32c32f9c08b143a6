"""The names of a training job's instances, in the order of their ranks."""

from functools import lru_cache

from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import list_rank_instance_groups, uses_some_instance_groups


@lru_cache(32)
def list_host_names(nodes: int) -> tuple[str, ...]:
    """Return algo-1, algo-2, ... in the order of SM_HOSTS, which is lexicographic: of ten, algo-10 comes second.

    Source: `hosts` of resourceconfig.json, "sorted lexicographically" (sagemaker-training 5.1.4, environment.py). The
    toolkit numbers nodes in this order for torchrun (torch_distributed.py) and mpirun (mpi.py).
    """
    return tuple(sorted(f"algo-{number}" for number in range(1, nodes + 1)))


def list_node_names(spec: Spec) -> tuple[str, ...]:
    """Return the names of a training job's nodes; nodes with ranks come first.

    The names of several instance groups contain the group, because only the logs show which algo-N belongs to which
    group (Developer Guide, "Configure a training job with a heterogeneous cluster").
    """
    block = get_sagemaker_block(spec)
    if not uses_some_instance_groups(block):
        return list_host_names(spec.nodes)
    with_ranks = list_rank_instance_groups(block)
    groups = (*with_ranks, *(group for group in block.instance_groups if group not in with_ranks))
    return tuple(f"{group.name}-{number}" for group in groups for number in range(1, group.instance_count + 1))

"""What SageMaker calls a training job's instances, in the order in which ranks are counted over them."""

from functools import lru_cache

from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.launch import is_on_some_instances, rank_groups


@lru_cache(32)
def host_names(nodes: int) -> tuple[str, ...]:
    """algo-1, algo-2, ... as SM_HOSTS has them: sorted as text, so that of ten algo-10 is the second.

    Source: `hosts` of resourceconfig.json, "sorted lexicographically" (sagemaker-training 5.1.4, environment.py), by
    whose places the toolkit numbers torchrun's nodes (torch_distributed.py) and mpirun's (mpi.py).
    """
    return tuple(sorted(f"algo-{number}" for number in range(1, nodes + 1)))


def node_names(spec: Spec) -> tuple[str, ...]:
    """What a training job's nodes are called: those that have ranks first.

    Hosts of several groups are called by group: which algo-N is of which "you need to figure out from the logs"
    (Developer Guide, "Configure a training job with a heterogeneous cluster").
    """
    block = block_of(spec)
    if not is_on_some_instances(block):
        return host_names(spec.nodes)
    own = rank_groups(block)
    groups = (*own, *(group for group in block.instance_groups if group not in own))
    return tuple(f"{group.name}-{number}" for group in groups for number in range(1, group.instance_count + 1))

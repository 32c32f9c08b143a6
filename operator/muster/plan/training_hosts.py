"""What SageMaker calls a training job's instances, in the order in which ranks are counted over them."""

from functools import lru_cache


@lru_cache(32)
def host_names(nodes: int) -> tuple[str, ...]:
    """algo-1, algo-2, ... as SM_HOSTS has them: sorted as text, so that of ten algo-10 is the second.

    Source: `hosts` of resourceconfig.json, "sorted lexicographically" (sagemaker-training 5.1.4, environment.py), by
    whose places the toolkit numbers torchrun's nodes (torch_distributed.py) and mpirun's (mpi.py).
    """
    return tuple(sorted(f"algo-{number}" for number in range(1, nodes + 1)))

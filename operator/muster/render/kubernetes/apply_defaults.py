"""A job with all that its spec leaves to the operator: what its node pool is, and how many ranks a node runs. Pure."""

from collections.abc import Sequence

from muster.api.config.pools import with_pool
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.node_pool import NamedPool
from muster.api.status.status import Status
from muster.render.kubernetes.devices import with_procs


def apply_defaults(job: Job, status: Status, pools: Sequence[NamedPool]) -> Job:
    """The job as the plan takes it. Raises `InvalidResource` for a pool that isn't among `pools`, and as `with_procs`.

    A gang that was started keeps its world, whatever an operator that takes over believes of pools and machines.
    """
    if not status.was_started:
        return with_procs(with_pool(job, pools))
    return with_procs(_with_pool_if_known(_with_world(job, status), pools))


def _with_world(job: Job, status: Status) -> Job:
    if job.spec.procs_per_node != "Auto" or status.ranks is None or status.ranks.world < job.spec.nodes:
        return job
    procs = status.ranks.world // job.spec.nodes
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def _with_pool_if_known(job: Job, pools: Sequence[NamedPool]) -> Job:
    try:
        return with_pool(job, pools)
    except InvalidResource:
        # Its pods have their machines already.
        return job

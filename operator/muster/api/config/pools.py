"""Replace a node pool's name in a job by the pool's fields from the operator's configuration."""

from collections.abc import Sequence

from muster.api.document import quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.node_pool import NamedPool, NodePool

_MAX_NAMES = 10


def resolve_pool(job: Job, pools: Sequence[NamedPool]) -> Job:
    """Return the job with the fields of its pool instead of the pool's name.

    Raise `InvalidResource` if `pools` has no pool of this name; the message lists the names of `pools`.
    """
    pool = job.spec.node_pool
    if pool is None or pool.name is None:
        return job
    configured_pool = next((entry for entry in pools if entry.name == pool.name), None)
    if configured_pool is None:
        raise InvalidResource(
            (FieldProblem("spec.nodePool.name", f"found {quote(pool.name)}; {_describe_pools(pools)}"),)
        )
    node_pool = NodePool(**{name: getattr(configured_pool, name) for name in NamedPool.model_fields})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"node_pool": node_pool})})


def _describe_pools(pools: Sequence[NamedPool]) -> str:
    names = [pool.name for pool in pools]
    if not names:
        return "the operator's configuration has no node pools: describe the pool here, for example by instanceType"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"the operator's configuration has {', '.join(names[:_MAX_NAMES])}{more}"

"""Apply the operator's defaults to a job: its node pool, and the number of ranks on each node. Pure."""

from collections.abc import Sequence

from muster.api.config.pools import resolve_pool
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.node_pool import NamedPool
from muster.api.status.status import Status
from muster.core.membership.member_text import parse_members
from muster.core.world import count_nodes_and_spares
from muster.render.kubernetes.devices import resolve_procs_per_node


def apply_defaults(job: Job, status: Status, pools: Sequence[NamedPool]) -> Job:
    """Return the complete job. Raises `InvalidResource`.

    A started job keeps its world size, even if a new operator has other pools.
    """
    if not status.was_ever_started:
        return resolve_procs_per_node(resolve_pool(job, pools))
    return resolve_procs_per_node(_resolve_pool_if_known(_keep_world_size(job, status), pools))


def _keep_world_size(job: Job, status: Status) -> Job:
    members = None if status.members is None else parse_members(status.members, count_nodes_and_spares(job))
    nodes = job.spec.nodes if members is None else len(members)
    if job.spec.procs_per_node != "Auto" or status.ranks is None or status.ranks.world < nodes:
        return job
    procs = status.ranks.world // nodes
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def _resolve_pool_if_known(job: Job, pools: Sequence[NamedPool]) -> Job:
    try:
        return resolve_pool(job, pools)
    except InvalidResource:
        # The job has started: it continues although the operator's pools have changed.
        return job

"""How many ranks a node runs when the job leaves it to its devices."""

from muster.api.spec import Job
from muster.backends.kubernetes.not_renderable import NotRenderable
from muster.backends.kubernetes.pieces import mapping, stacked, trainer_of
from muster.backends.kubernetes.written import kinds, written
from muster.plan.facts import Trouble
from muster.plan.render import resolve_procs

DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuroncore")
"""Extended resources of which each rank gets one."""


def with_procs(job: Job) -> Job:
    """The job with `procsPerNode: Auto` turned into the devices that each node's container asks for, else 1.

    Raises `NotRenderable` when nodes differ in them: the plan has one number for all.
    """
    if job.spec.procs_per_node != "Auto":
        return job
    nodes = [alike[0] for alike in kinds(job)]
    counts = {node: resolve_procs(job, _devices(job, node)) for node in nodes}
    first = counts[nodes[0]]
    for node, count in counts.items():
        if count != first:
            raise NotRenderable(
                Trouble(
                    "ProcsPerNodeUnclear",
                    f"spec.procsPerNode is Auto, and node {nodes[0]} has devices for {first} ranks, node {node} for "
                    f"{count}; set spec.procsPerNode",
                )
            )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": first})})


def _devices(job: Job, node: int) -> int:
    limits = mapping(mapping(trainer_of(stacked(written(job, node))).get("resources")).get("limits"))
    for name in DEVICES:
        count = str(limits.get(name, "0"))
        if not count.isascii() or not count.isdigit():
            raise NotRenderable(
                Trouble(
                    "DevicesUnclear",
                    f"the limit {name} of container trainer is {count}, and devices are counted in whole numbers; "
                    "write one, for example 8",
                )
            )
        if int(count):
            return int(count)
    return 0

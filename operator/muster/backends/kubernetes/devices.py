"""How many ranks a node runs when the job leaves it to its devices."""

from muster.api.problems import InvalidResource, Problem
from muster.api.spec import Job
from muster.backends.kubernetes.pieces import mapping, stacked, trainer_of
from muster.backends.kubernetes.written import kinds, written
from muster.plan.render import resolve_procs

DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuroncore")
"""Extended resources of which each rank gets one."""


def with_procs(job: Job) -> Job:
    """The job with `procsPerNode: Auto` turned into the devices that each node's container asks for, else 1.

    Raises `InvalidResource` when nodes differ in them: the plan has one number for all.
    """
    if job.spec.procs_per_node != "Auto":
        return job
    counts = {alike[0]: resolve_procs(job, _devices(job, alike[0])) for alike in kinds(job)}
    (first, procs), *others = counts.items()
    for node, count in others:
        if count != procs:
            raise _unclear(
                f"found Auto, and node {first} has devices for {procs} ranks, node {node} for {count}; set it"
            )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def _devices(job: Job, node: int) -> int:
    limits = mapping(mapping(trainer_of(stacked(written(job, node))).get("resources")).get("limits"))
    for name in DEVICES:
        count = str(limits.get(name, "0"))
        if not count.isascii() or not count.isdigit():
            raise _unclear(f"found Auto, and {count} as limit of {name}; devices are whole numbers, for example 8")
        if int(count):
            return int(count)
    return 0


def _unclear(message: str) -> InvalidResource:
    return InvalidResource((Problem("spec.procsPerNode", message),))

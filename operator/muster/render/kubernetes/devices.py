"""How many ranks a node runs when the job leaves it to its devices."""

from dataclasses import replace

from muster.api.amounts import amount
from muster.api.document import quoted
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.objects.kubernetes.names import TRAINER
from muster.render.agent_plan import resolve_procs
from muster.render.kubernetes.hardware import GPU, NEURON, NEURON_CORE, devices
from muster.render.kubernetes.machine_type import machine_type
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.owner_patches import kinds, owner_patches
from muster.render.kubernetes.pod_patch import PodPatch, entries, in_spec, spec_of, stacked, trainer_of

DEVICES = (GPU, "amd.com/gpu", NEURON_CORE)
"""Extended resources of which each rank gets one."""

_MOST_DIGITS = 9
"""Of a number of devices: Python refuses to read the longest texts of digits at all."""


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
                f"found Auto, and node {first} has devices for {amount(procs, 'rank')}, node {node} for {count}; set it"
            )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def gpus(job: Job, node: int) -> str:
    """How many NVIDIA GPUs the node's container asks for, as it stands there: "8"; "0" for none."""
    owners = owner_patches(job, node)
    return str(_limits(job, owners, stacked(owners)).get(GPU, "0"))


def _limits(job: Job, owners: tuple[PodPatch, ...], user: Fields) -> Fields:
    trainer = trainer_of(stacked((*devices(job, user), *owners)))
    return mapping(mapping(trainer.get("resources")).get("limits"))


def _about_machines(patch: PodPatch) -> PodPatch:
    """What the patch says of machines and their devices: the rest of a pod need not be merged to count them."""
    spec = spec_of(patch.fields)
    kept: Fields = {name: spec[name] for name in ("nodeSelector", "affinity") if name in spec}
    kept["containers"] = [
        {name: container[name] for name in ("name", "resources") if name in container}
        for container in entries(spec, "containers")
        if container.get("name") == TRAINER
    ]
    return replace(patch, fields=in_spec(kept))


def _devices(job: Job, node: int) -> int:
    owners = tuple(_about_machines(patch) for patch in owner_patches(job, node))
    user = stacked(owners)
    limits = _limits(job, owners, user)
    for name in DEVICES:
        count = _count(limits, name)
        if count:
            return count
    chips = _count(limits, NEURON)
    return chips * _cores_per_chip(job, user) if chips else 0


def _count(limits: Fields, name: str) -> int:
    count = str(limits.get(name, "0"))
    if not count.isascii() or not count.isdigit() or len(count) > _MOST_DIGITS:
        words = f"found Auto, and {quoted(count)} as limit of {name}"
        raise _unclear(f"{words}; devices are whole numbers, for example 8")
    return int(count)


def _cores_per_chip(job: Job, user: Fields) -> int:
    machine = machine_type(job, user)
    facts = None if machine is None else machine.facts
    if facts is None or not facts.neuron_chips:
        raise _unclear(f"found Auto, and {NEURON} of a type of which muster doesn't know the cores; set it")
    return facts.neuron_cores // facts.neuron_chips


def _unclear(message: str) -> InvalidResource:
    return InvalidResource((FieldProblem("spec.procsPerNode", message),))

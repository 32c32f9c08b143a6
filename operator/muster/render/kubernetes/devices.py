"""Derive the number of ranks on each node from the node's devices."""

from dataclasses import replace

from muster.api.document import quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.core.world import choose_procs_per_node
from muster.objects.kubernetes.devices import AMD_GPU, GPU, NEURON, NEURON_CORE
from muster.objects.kubernetes.names import TRAINER_CONTAINER
from muster.render.kubernetes.hardware import make_device_patches
from muster.render.kubernetes.machine_type import find_machine_type
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import (
    PodPatch,
    get_entries,
    get_pod_spec,
    get_trainer,
    merge_patches,
    wrap_in_spec,
)
from muster.render.kubernetes.user_patches import collect_user_patches, group_equal_nodes

DEVICES = (GPU, AMD_GPU, NEURON_CORE)
"""The extended resources with one rank for each device."""

_MAX_DIGITS = 9
"""The maximum number of digits: Python refuses to parse very long numbers."""


def resolve_procs_per_node(job: Job) -> Job:
    """Replace `procsPerNode: Auto` by the number of devices in each node's container, or 1 without devices.

    Raises `InvalidResource` if the numbers of the nodes differ, because the plan has one number for all nodes.
    """
    if job.spec.procs_per_node != "Auto":
        return job
    counts = {nodes[0]: choose_procs_per_node(job, _count_devices(job, nodes[0])) for nodes in group_equal_nodes(job)}
    (first, procs), *others = counts.items()
    for node, count in others:
        if count != procs:
            raise _make_procs_error(
                f"found Auto, and node {first} has devices for {pluralize(procs, 'rank')}, node {node} for {count};"
                " set procsPerNode to a number"
            )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def get_gpu_limit(job: Job, node: int) -> str:
    """Return the number of NVIDIA GPUs in the limits of a node's container, as text, such as "8"."""
    user_patches = collect_user_patches(job, node)
    return str(_get_limits(job, user_patches, merge_patches(user_patches)).get(GPU, "0"))


def _get_limits(job: Job, user_patches: tuple[PodPatch, ...], user_fields: Fields) -> Fields:
    trainer = get_trainer(merge_patches((*make_device_patches(job, user_fields), *user_patches)))
    return read_mapping(read_mapping(trainer.get("resources")).get("limits"))


def _select_device_fields(patch: PodPatch) -> PodPatch:
    """Return only the parts of a patch that affect devices, because they are faster to merge."""
    spec = get_pod_spec(patch.fields)
    device_fields: Fields = {name: spec[name] for name in ("nodeSelector", "affinity") if name in spec}
    device_fields["containers"] = [
        {name: container[name] for name in ("name", "resources") if name in container}
        for container in get_entries(spec, "containers")
        if container.get("name") == TRAINER_CONTAINER
    ]
    return replace(patch, fields=wrap_in_spec(device_fields))


def _count_devices(job: Job, node: int) -> int:
    user_patches = tuple(_select_device_fields(patch) for patch in collect_user_patches(job, node))
    user_fields = merge_patches(user_patches)
    limits = _get_limits(job, user_patches, user_fields)
    for name in DEVICES:
        count = _read_count(limits, name)
        if count:
            return count
    chips = _read_count(limits, NEURON)
    return chips * _get_cores_per_chip(job, user_fields) if chips else 0


def _read_count(limits: Fields, name: str) -> int:
    count = str(limits.get(name, "0"))
    if not count.isascii() or not count.isdigit() or len(count) > _MAX_DIGITS:
        message = f"found Auto, and {quote(count)} as limit of {name}"
        raise _make_procs_error(f"{message}; devices are whole numbers, for example 8")
    return int(count)


def _get_cores_per_chip(job: Job, user_fields: Fields) -> int:
    machine = find_machine_type(job, user_fields)
    facts = None if machine is None else machine.facts
    if facts is None or not facts.neuron_chips:
        raise _make_procs_error(
            f"found Auto, but muster doesn't know how many NeuronCores a chip ({NEURON}) of this instance type has; "
            "set a number"
        )
    return facts.neuron_cores // facts.neuron_chips


def _make_procs_error(message: str) -> InvalidResource:
    return InvalidResource((FieldProblem("spec.procsPerNode", message),))

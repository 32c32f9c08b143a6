"""Patches for the machine's instance type: devices, EFA, huge pages, tolerations and variables. Pure.

The owner's own settings take precedence over all of them.
"""

from muster.api.document import JSON
from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.core.instances import Instance
from muster.render.kubernetes.machine_type import MachineType, machine_type, sagemaker_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, in_spec, in_trainer, merge_patches, trainer_of

GPU = "nvidia.com/gpu"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"

HUGE_PAGES_MEMORY = "8000Mi"
"""The memory request besides the huge pages, from the EFA example of the Amazon EKS User Guide."""

EFA_UNKNOWN = "EFAUnknown"
EFA_CONTRADICTED = "EFAContradicted"

TYPE_VARIABLE = "SM_CURRENT_INSTANCE_TYPE"
"""SageMaker's variable for the instance type; the agent passes it on to the ranks."""

_NVIDIA = "nvidia.com/"


def devices(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """The machine's GPUs or Neuron chips, if the owner's fields `user` request no devices."""
    machine = machine_type(job, user)
    if machine is None or machine.facts is None:
        return ()
    amounts = asked(user)
    claims = mapping(trainer_of(user).get("resources")).get("claims")
    # An owner who requests any device, partial device or claim decides about all devices.
    if claims or any(name.startswith((_NVIDIA, NEURON)) for name in amounts):
        return ()
    counts = {GPU: machine.facts.gpus, NEURON: machine.facts.neuron_chips}
    return tuple(
        _limit(name, count, machine.source, f"all that a {machine.name} has") for name, count in counts.items() if count
    )


def type_variable(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """A variable with the instance type; without a type in the job, the agent sets `local`."""
    machine = machine_type(job, user)
    if machine is None:
        return ()
    variables: list[JSON] = [{"name": TYPE_VARIABLE, "value": sagemaker_name(machine)}]
    return (
        PodPatch(in_trainer({"env": variables}), machine.source, "the machine's type, as SageMaker tells a script"),
    )


def fabric(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """Patches for EFA. Raises `NotRenderable` if `network.efa` can't be satisfied."""
    machine, owner_count = machine_type(job, user), asked(user).get(EFA)
    if job.spec.network.efa == "None":
        if owner_count is not None:
            raise _not_renderable(
                EFA_CONTRADICTED, f"spec.network.efa is None, and resources name {EFA}; remove one of them"
            )
        return ()
    if owner_count is not None:
        return _with_owner_devices(user, machine, str(owner_count))
    count = _count(job, user, machine)
    if not count or machine is None or machine.facts is None:
        return ()
    why = f"all that a {machine.name} has; NCCL and MPI use each of them"
    source = "spec.network.efa" if job.spec.network.efa == "All" else machine.source
    patches = (_limit(EFA, count, source, why), _variables(f"a {machine.name} has EFA"))
    return (*patches, *_huge_pages(user, machine, machine.facts, machine.facts.efa))


def _with_owner_devices(user: Fields, machine: MachineType | None, owner_count: str) -> tuple[PodPatch, ...]:
    """Patches for EFA devices that the owner requests."""
    if owner_count == "0":
        return ()
    variables = _variables(f"resources name {EFA}")
    # Huge pages can only be computed for a known type and a whole number.
    if machine is None or machine.facts is None or not machine.facts.efa or not owner_count.isdecimal():
        return (variables,)
    count = min(int(owner_count), machine.facts.efa)
    return (variables, *_huge_pages(user, machine, machine.facts, count))


def _count(job: Job, user: Fields, machine: MachineType | None) -> int:
    """The number of EFA devices that muster requests."""
    facts = None if machine is None else machine.facts
    if job.spec.network.efa == "All":
        return _all_efa_devices(machine, facts)
    # A single node needs no EFA, and a part of a machine leaves the devices to its other pods.
    if facts is None or job.spec.nodes == 1 or not _has_all_devices(job, user, facts):
        return 0
    return facts.efa


def _all_efa_devices(machine: MachineType | None, facts: Instance | None) -> int:
    if machine is None:
        message = "the job names no instance type: set spec.nodePool.instanceType"
        raise _not_renderable(EFA_UNKNOWN, f"spec.network.efa is All, and {message}, or {EFA} in spec.resources")
    if facts is None:
        message = f"muster doesn't know how many EFA devices a {machine.name} has: set {EFA} in spec.resources.limits"
        raise _not_renderable(EFA_UNKNOWN, f"spec.network.efa is All, and {message}")
    if not facts.efa:
        message = f"a {machine.name} has no EFA devices: choose another type, or leave it at Auto"
        raise _not_renderable(EFA_CONTRADICTED, f"spec.network.efa is All, and {message}")
    return facts.efa


def _has_all_devices(job: Job, user: Fields, facts: Instance) -> bool:
    amounts = asked(merge_patches((*devices(job, user), PodPatch(user, "", ""))))
    physical = facts.neuron_cores * facts.physical_cores_per_core
    cores = ((NEURON_CORE, facts.neuron_cores), (NEURON_CORE, physical))
    whole = ((GPU, facts.gpus), (NEURON, facts.neuron_chips), *cores)
    return any(count and str(amounts.get(name)) == str(count) for name, count in whole)


def asked(pod: Fields) -> dict[str, JSON]:
    """The resources of the ranks' container: limits, and requests for resources without a limit."""
    resources = mapping(trainer_of(pod).get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def _limit(name: str, count: int, source: str, why: str) -> PodPatch:
    return PodPatch(in_trainer({"resources": {"limits": {name: count}}}), source, why)


def _variables(why: str) -> PodPatch:
    # With libfabric 1.18 and aws-ofi-nccl 1.7 or later, only this variable is useful (AWS' awsome-distributed-training,
    # EFA cheatsheet).
    variables: list[JSON] = [{"name": "FI_EFA_USE_HUGE_PAGE", "value": "0"}]
    message = f"{why}; with huge pages a fork, as of a data loader's workers, can fail for want of memory"
    return PodPatch(in_trainer({"env": variables}), "muster", message)


def _huge_pages(user: Fields, machine: MachineType, facts: Instance, count: int) -> list[PodPatch]:
    amounts = asked(user)
    if not facts.huge_pages_mib or any(name.startswith("hugepages-") for name in amounts):
        return []
    # A pod with a part of the devices gets the same part of the huge pages.
    share = f"{facts.huge_pages_mib * count // facts.efa}Mi"
    part = "" if count == facts.efa else f", the part of {count} in {facts.efa} devices"
    why = f"what AWS sets aside for EFA on a {machine.name}, for programs that ask for them{part}"
    patches = [PodPatch(in_trainer({"resources": {"limits": {HUGE_PAGES: share}}}), machine.source, why)]
    if not {"memory", "cpu"} & amounts.keys():
        why = "Kubernetes gives huge pages only to who asks for memory or cpu, too; spec.resources may ask for more"
        patches.append(PodPatch(in_trainer({"resources": {"requests": {"memory": HUGE_PAGES_MEMORY}}}), MUSTER, why))
    return patches


def tolerations(pod: Fields) -> tuple[PodPatch, ...]:
    """Tolerations for the taints of machines with the requested devices."""
    names = asked(pod)
    taints = ((_NVIDIA, GPU), (NEURON, NEURON))
    return tuple(
        PodPatch(
            in_spec({"tolerations": [{"key": taint, "operator": "Exists", "effect": "NoSchedule"}]}),
            MUSTER,
            f"machines with such devices are usually kept for who asks for them, by a taint {taint}",
        )
        for prefix, taint in taints
        if any(name.startswith(prefix) for name in names)
    )


def uses_efa(pod: Fields) -> bool:
    """Whether the ranks' container asks for EFA devices."""
    return str(asked(pod).get(EFA, "0")) != "0"


def _not_renderable(reason: str, message: str) -> NotRenderable:
    return NotRenderable(Problem(reason, message))

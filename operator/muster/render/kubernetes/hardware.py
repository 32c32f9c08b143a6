"""Render the patches for an instance type: devices, EFA, huge pages, tolerations and variables. Pure.

The user's own settings override these patches.
"""

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.core.instances import InstanceHardware
from muster.core.problem import Problem
from muster.objects.kubernetes.devices import GPU, NEURON, NEURON_CORE
from muster.render.kubernetes.machine_type import MachineType, find_machine_type, get_sagemaker_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import (
    MUSTER,
    PodPatch,
    get_trainer,
    merge_patches,
    wrap_in_spec,
    wrap_in_trainer,
)

EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"

HUGE_PAGES_MEMORY = "8000Mi"
"""The request for normal memory, as in the EFA example of the Amazon EKS User Guide."""

EFA_UNKNOWN = "EFAUnknown"
EFA_CONTRADICTED = "EFAContradicted"

TYPE_VARIABLE = "SM_CURRENT_INSTANCE_TYPE"
"""SageMaker's variable for the instance type, which the agent passes to the ranks."""

_NVIDIA = "nvidia.com/"


def make_device_patches(job: Job, user_fields: Fields) -> tuple[PodPatch, ...]:
    """Request all GPUs or Neuron chips of the machine, if the user's fields `user_fields` request no devices."""
    machine = find_machine_type(job, user_fields)
    if machine is None or machine.facts is None:
        return ()
    amounts = get_requested_resources(user_fields)
    claims = read_mapping(get_trainer(user_fields).get("resources")).get("claims")
    # If the user requests a device, a part of a device or a resource claim, add no devices.
    if claims or any(name.startswith((_NVIDIA, NEURON)) for name in amounts):
        return ()
    counts = {GPU: machine.facts.gpus, NEURON: machine.facts.neuron_chips}
    return tuple(
        _make_limit_patch(name, count, machine.source, f"all that a {machine.name} has")
        for name, count in counts.items()
        if count
    )


def make_instance_type_patches(job: Job, user_fields: Fields) -> tuple[PodPatch, ...]:
    """Set the variable for the instance type. If the job has no instance type, the agent sets it to `local`."""
    machine = find_machine_type(job, user_fields)
    if machine is None:
        return ()
    variables: list[JSON] = [{"name": TYPE_VARIABLE, "value": get_sagemaker_name(machine)}]
    return (
        PodPatch(wrap_in_trainer({"env": variables}), machine.source, "the instance type, in SageMaker's variable"),
    )


def make_efa_patches(job: Job, user_fields: Fields) -> tuple[PodPatch, ...]:
    """Return the patches for EFA. Raises `NotRenderable` if `network.efa` can't be satisfied."""
    machine, user_count = find_machine_type(job, user_fields), get_requested_resources(user_fields).get(EFA)
    if job.spec.network.efa == "None":
        if user_count is not None:
            raise _make_error(
                EFA_CONTRADICTED, f"spec.network.efa is None, but resources request {EFA}; remove one of these settings"
            )
        return ()
    if user_count is not None:
        return _make_user_efa_patches(user_fields, machine, str(user_count))
    count = _count_efa_devices(job, user_fields, machine)
    if not count or machine is None or machine.facts is None:
        return ()
    reason = f"all that a {machine.name} has; NCCL and MPI use each of them"
    source = "spec.network.efa" if job.spec.network.efa == "All" else machine.source
    patches = (_make_limit_patch(EFA, count, source, reason), _make_efa_variables_patch(f"a {machine.name} has EFA"))
    return (*patches, *_make_huge_pages_patches(user_fields, machine, machine.facts, machine.facts.efa))


def _make_user_efa_patches(user_fields: Fields, machine: MachineType | None, user_count: str) -> tuple[PodPatch, ...]:
    """Return the patches for EFA devices that the user requests."""
    if user_count == "0":
        return ()
    variables = _make_efa_variables_patch(f"resources name {EFA}")
    # Huge pages depend on the instance type and the number of devices.
    if machine is None or machine.facts is None or not machine.facts.efa or not user_count.isdecimal():
        return (variables,)
    count = min(int(user_count), machine.facts.efa)
    return (variables, *_make_huge_pages_patches(user_fields, machine, machine.facts, count))


def _count_efa_devices(job: Job, user_fields: Fields, machine: MachineType | None) -> int:
    """Return the number of EFA devices that muster requests."""
    facts = None if machine is None else machine.facts
    if job.spec.network.efa == "All":
        return _count_all_efa_devices(machine, facts)
    # A single node needs no EFA. A pod with a part of the machine leaves EFA to other pods.
    if facts is None or job.spec.max_nodes == 1 or not _has_all_devices(job, user_fields, facts):
        return 0
    return facts.efa


def _count_all_efa_devices(machine: MachineType | None, facts: InstanceHardware | None) -> int:
    if machine is None:
        message = "the job names no instance type: set spec.nodePool.instanceType"
        raise _make_error(EFA_UNKNOWN, f"spec.network.efa is All, and {message}, or {EFA} in spec.resources")
    if facts is None:
        message = f"muster doesn't know how many EFA devices a {machine.name} has: set {EFA} in spec.resources.limits"
        raise _make_error(EFA_UNKNOWN, f"spec.network.efa is All, and {message}")
    if not facts.efa:
        message = f"a {machine.name} has no EFA devices: choose another type, or set efa to Auto"
        raise _make_error(EFA_CONTRADICTED, f"spec.network.efa is All, and {message}")
    return facts.efa


def _has_all_devices(job: Job, user_fields: Fields, facts: InstanceHardware) -> bool:
    amounts = get_requested_resources(
        merge_patches((*make_device_patches(job, user_fields), PodPatch(user_fields, "", "")))
    )
    physical = facts.neuron_cores * facts.physical_cores_per_core
    cores = ((NEURON_CORE, facts.neuron_cores), (NEURON_CORE, physical))
    totals = ((GPU, facts.gpus), (NEURON, facts.neuron_chips), *cores)
    return any(count and str(amounts.get(name)) == str(count) for name, count in totals)


def get_requested_resources(pod: Fields) -> dict[str, JSON]:
    """Return the resources of the ranks' container: its limits, and its requests for resources without a limit."""
    resources = read_mapping(get_trainer(pod).get("resources"))
    return {**read_mapping(resources.get("requests")), **read_mapping(resources.get("limits"))}


def _make_limit_patch(name: str, count: int, source: str, reason: str) -> PodPatch:
    return PodPatch(wrap_in_trainer({"resources": {"limits": {name: count}}}), source, reason)


def _make_efa_variables_patch(reason: str) -> PodPatch:
    # libfabric 1.18 and aws-ofi-nccl 1.7 need no other variable (AWS' awsome-distributed-training, EFA cheatsheet).
    variables: list[JSON] = [{"name": "FI_EFA_USE_HUGE_PAGE", "value": "0"}]
    message = f"{reason}; with huge pages a fork, as of a data loader's workers, can fail because memory is short"
    return PodPatch(wrap_in_trainer({"env": variables}), "muster", message)


def _make_huge_pages_patches(
    user_fields: Fields, machine: MachineType, facts: InstanceHardware, count: int
) -> list[PodPatch]:
    amounts = get_requested_resources(user_fields)
    if not facts.huge_pages_mib or any(name.startswith("hugepages-") for name in amounts):
        return []
    # With half of the devices, for example, a pod gets half of the huge pages.
    amount = f"{facts.huge_pages_mib * count // facts.efa}Mi"
    part = "" if count == facts.efa else f", for {count} of {facts.efa} devices"
    reason = f"the amount that AWS reserves for EFA on a {machine.name}, for programs that request them{part}"
    patches = [PodPatch(wrap_in_trainer({"resources": {"limits": {HUGE_PAGES: amount}}}), machine.source, reason)]
    if not {"memory", "cpu"} & amounts.keys():
        reason = "Kubernetes requires a request for memory or cpu with huge pages; spec.resources can raise it"
        patches.append(
            PodPatch(wrap_in_trainer({"resources": {"requests": {"memory": HUGE_PAGES_MEMORY}}}), MUSTER, reason)
        )
    return patches


def make_toleration_patches(pod: Fields) -> tuple[PodPatch, ...]:
    """Return tolerations for the taints of machines with the requested devices."""
    names = get_requested_resources(pod)
    taints = ((_NVIDIA, GPU), (NEURON, NEURON))
    return tuple(
        PodPatch(
            wrap_in_spec({"tolerations": [{"key": taint, "operator": "Exists", "effect": "NoSchedule"}]}),
            MUSTER,
            f"machines with such devices usually have the taint {taint}",
        )
        for prefix, taint in taints
        if any(name.startswith(prefix) for name in names)
    )


def uses_efa(pod: Fields) -> bool:
    """Whether the ranks' container requests EFA devices."""
    return str(get_requested_resources(pod).get(EFA, "0")) != "0"


def _make_error(reason: str, message: str) -> NotRenderable:
    return NotRenderable(Problem(reason, message))

"""What a pod gets because of its machine's instance type: devices, EFA, huge pages, tolerations, variables. Pure.

Nothing of it stands beside a word of the owner's about the same thing.
"""

from muster.api.document import JSON
from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.core.instances import Instance
from muster.render.kubernetes.machine_type import MachineType, machine_type, sagemaker_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, in_spec, in_trainer, stacked, trainer_of

GPU = "nvidia.com/gpu"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"

HUGE_PAGES_MEMORY = "8000Mi"
"""Beside the huge pages, as a worker of the Amazon EKS User Guide's EFA example asks for."""

EFA_UNKNOWN = "EFAUnknown"
EFA_CONTRADICTED = "EFAContradicted"

TYPE_VARIABLE = "SM_CURRENT_INSTANCE_TYPE"
"""Where SageMaker's containers have the type of their machine; the agent takes it over into what it tells ranks."""

_NVIDIA = "nvidia.com/"


def devices(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """The machine's GPUs or Neuron chips, for a pod that its owner wrote as `user` without any."""
    machine = machine_type(job, user)
    if machine is None or machine.facts is None:
        return ()
    amounts = asked(user)
    claims = mapping(trainer_of(user).get("resources")).get("claims")
    # Who names one device of a machine, a part of one, or a claim for some, has thought of all of them.
    if claims or any(name.startswith((_NVIDIA, NEURON)) for name in amounts):
        return ()
    counts = {GPU: machine.facts.gpus, NEURON: machine.facts.neuron_chips}
    return tuple(
        _limit(name, count, machine.source, f"all that a {machine.name} has") for name, count in counts.items() if count
    )


def type_variable(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """The machine's type, for scripts; of one that the job doesn't name the agent says `local`."""
    machine = machine_type(job, user)
    if machine is None:
        return ()
    variables: list[JSON] = [{"name": TYPE_VARIABLE, "value": sagemaker_name(machine)}]
    return (
        PodPatch(in_trainer({"env": variables}), machine.source, "the machine's type, as SageMaker tells a script"),
    )


def fabric(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """EFA and what it needs. Raises `NotRenderable` when `network.efa` asks for what can't be."""
    machine, theirs = machine_type(job, user), asked(user).get(EFA)
    if job.spec.network.efa == "None":
        if theirs is not None:
            raise _refused(EFA_CONTRADICTED, f"spec.network.efa is None, and resources name {EFA}; remove one of them")
        return ()
    if theirs is not None:
        return _beside(user, machine, str(theirs))
    count = _count(job, user, machine)
    if not count or machine is None or machine.facts is None:
        return ()
    why = f"all that a {machine.name} has; NCCL and MPI use each of them"
    source = "spec.network.efa" if job.spec.network.efa == "All" else machine.source
    patches = (_limit(EFA, count, source, why), _variables(f"a {machine.name} has EFA"))
    return (*patches, *_huge_pages(user, machine, machine.facts, machine.facts.efa))


def _beside(user: Fields, machine: MachineType | None, theirs: str) -> tuple[PodPatch, ...]:
    """What goes with a number of EFA devices that is the owner's."""
    if theirs == "0":
        return ()
    variables = _variables(f"resources name {EFA}")
    # Of another type than is known, or of a number that isn't whole, no share can be told.
    if machine is None or machine.facts is None or not machine.facts.efa or not theirs.isdecimal():
        return (variables,)
    count = min(int(theirs), machine.facts.efa)
    return (variables, *_huge_pages(user, machine, machine.facts, count))


def _count(job: Job, user: Fields, machine: MachineType | None) -> int:
    """How many EFA devices muster asks for."""
    facts = None if machine is None else machine.facts
    if job.spec.network.efa == "All":
        return _all(machine, facts)
    # One node alone needs no network, and a part of a machine leaves it to the others there.
    if facts is None or job.spec.nodes == 1 or not _is_whole(job, user, facts):
        return 0
    return facts.efa


def _all(machine: MachineType | None, facts: Instance | None) -> int:
    if machine is None:
        words = "the job names no instance type: set spec.nodePool.instanceType"
        raise _refused(EFA_UNKNOWN, f"spec.network.efa is All, and {words}, or {EFA} in spec.resources")
    if facts is None:
        words = f"muster doesn't know how many EFA devices a {machine.name} has: set {EFA} in spec.resources.limits"
        raise _refused(EFA_UNKNOWN, f"spec.network.efa is All, and {words}")
    if not facts.efa:
        words = f"a {machine.name} has no EFA devices: choose another type, or leave it at Auto"
        raise _refused(EFA_CONTRADICTED, f"spec.network.efa is All, and {words}")
    return facts.efa


def _is_whole(job: Job, user: Fields, facts: Instance) -> bool:
    amounts = asked(stacked((*devices(job, user), PodPatch(user, "", ""))))
    physical = facts.neuron_cores * facts.cores_in_one
    cores = ((NEURON_CORE, facts.neuron_cores), (NEURON_CORE, physical))
    whole = ((GPU, facts.gpus), (NEURON, facts.neuron_chips), *cores)
    return any(count and str(amounts.get(name)) == str(count) for name, count in whole)


def asked(pod: Fields) -> dict[str, JSON]:
    """What the ranks' container asks for, by resource: its limits, and requests where there is no limit."""
    resources = mapping(trainer_of(pod).get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def _limit(name: str, count: int, source: str, why: str) -> PodPatch:
    return PodPatch(in_trainer({"resources": {"limits": {name: count}}}), source, why)


def _variables(why: str) -> PodPatch:
    # The only one worth setting with libfabric from 1.18 and aws-ofi-nccl from 1.7 on: others harm or do nothing
    # (AWS' awsome-distributed-training, EFA cheatsheet).
    variables: list[JSON] = [{"name": "FI_EFA_USE_HUGE_PAGE", "value": "0"}]
    words = f"{why}; with huge pages a fork, as of a data loader's workers, can fail for want of memory"
    return PodPatch(in_trainer({"env": variables}), "muster", words)


def _huge_pages(user: Fields, machine: MachineType, facts: Instance, count: int) -> list[PodPatch]:
    amounts = asked(user)
    if not facts.huge_pages_mib or any(name.startswith("hugepages-") for name in amounts):
        return []
    # Who leaves devices to other pods leaves them their part of the pages as well.
    share = f"{facts.huge_pages_mib * count // facts.efa}Mi"
    part = "" if count == facts.efa else f", the part of {count} in {facts.efa} devices"
    why = f"what AWS sets aside for EFA on a {machine.name}, for programs that ask for them{part}"
    patches = [PodPatch(in_trainer({"resources": {"limits": {HUGE_PAGES: share}}}), machine.source, why)]
    if not {"memory", "cpu"} & amounts.keys():
        why = "Kubernetes gives huge pages only to who asks for memory or cpu, too; spec.resources may ask for more"
        patches.append(PodPatch(in_trainer({"resources": {"requests": {"memory": HUGE_PAGES_MEMORY}}}), MUSTER, why))
    return patches


def tolerations(pod: Fields) -> tuple[PodPatch, ...]:
    """What lets a pod onto machines that are kept for their devices, by those that it asks for."""
    names = asked(pod)
    usual = ((_NVIDIA, GPU), (NEURON, NEURON))
    return tuple(
        PodPatch(
            in_spec({"tolerations": [{"key": taint, "operator": "Exists", "effect": "NoSchedule"}]}),
            MUSTER,
            f"machines with such devices are usually kept for who asks for them, by a taint {taint}",
        )
        for prefix, taint in usual
        if any(name.startswith(prefix) for name in names)
    )


def uses_efa(pod: Fields) -> bool:
    """Whether the ranks' container asks for EFA devices."""
    return str(asked(pod).get(EFA, "0")) != "0"


def _refused(reason: str, message: str) -> NotRenderable:
    return NotRenderable(Problem(reason, message))

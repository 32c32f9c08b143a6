"""Find the instance type of a node's machine in the job. Pure."""

from dataclasses import dataclass

from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.api.spec.node_pool import TYPE_LABEL
from muster.core.instances import Instance, find_instance
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import entries, spec_of

_ML = "ml."


@dataclass(frozen=True)
class MachineType:
    """An instance type: its name, the job's field with it, and its data (None: unknown type)."""

    name: str
    source: str
    facts: Instance | None


def machine_type(job: Job, user: Fields) -> MachineType | None:
    """The instance type of a pod with the owner's fields `user`; None if the job has none, or several."""
    # The template overrides the pool, as in the pod.
    for name, source in (
        (mapping(spec_of(user).get("nodeSelector")).get(TYPE_LABEL), "spec.template"),
        (_by_affinity(user), "spec.template"),
        (_by_pool(job), pool_source(job)),
    ):
        if isinstance(name, str) and name:
            return MachineType(name, source, find_instance(name))
    return None


def sagemaker_name(machine: MachineType) -> str:
    """SageMaker's name of the instance type, such as ml.p4d.24xlarge."""
    return machine.name if machine.name.startswith(_ML) else f"{_ML}{machine.name}"


def pool_source(job: Job) -> str:
    """The source of a pool's settings in the output of `muster explain`."""
    name = None if job.spec.node_pool is None else job.spec.node_pool.name
    return "spec.nodePool" if name is None else f"node pool {name}"


def _by_pool(job: Job) -> str | None:
    pool = job.spec.node_pool
    return None if pool is None else pool.instance_type or pool.node_selector.get(TYPE_LABEL)


def _by_affinity(user: Fields) -> str | None:
    affinity = mapping(mapping(spec_of(user).get("affinity")).get("nodeAffinity"))
    terms = entries(mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")), "nodeSelectorTerms")
    # The scheduler accepts any of the terms, so all of them must require the same type.
    types = {_by_term(term) for term in terms}
    return types.pop() if len(types) == 1 else None


def _by_term(term: Fields) -> str | None:
    for expression in entries(term, "matchExpressions"):
        values = expression.get("values")
        if expression.get("key") != TYPE_LABEL or expression.get("operator") != "In" or not isinstance(values, list):
            continue
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
    return None

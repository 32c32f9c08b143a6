"""Which instance type a node's machine is of, as far as the job says. Pure."""

from dataclasses import dataclass

from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.api.spec.node_pool import TYPE_LABEL
from muster.core.instances import Instance, instance_of
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import entries, spec_of

_ML = "ml."


@dataclass(frozen=True)
class MachineType:
    """The type's name, the field of the resource that names it, and what is known of it (None: nothing)."""

    name: str
    source: str
    facts: Instance | None


def machine_type(job: Job, user: Fields) -> MachineType | None:
    """The type for a pod that its owner wrote as `user`; None when the job names none, or several."""
    # What stands in a template is merged over the pool, so that it counts here, too.
    for found, source in (
        (mapping(spec_of(user).get("nodeSelector")).get(TYPE_LABEL), "spec.template"),
        (_by_affinity(user), "spec.template"),
        (_by_pool(job), pool_source(job)),
    ):
        if isinstance(found, str) and found:
            return MachineType(found, source, instance_of(found))
    return None


def sagemaker_name(machine: MachineType) -> str:
    """What SageMaker calls such a machine, and its scripts compare with: ml.p4d.24xlarge."""
    return machine.name if machine.name.startswith(_ML) else f"{_ML}{machine.name}"


def pool_source(job: Job) -> str:
    """What `muster explain` calls the origin of what a pool says."""
    name = None if job.spec.node_pool is None else job.spec.node_pool.name
    return "spec.nodePool" if name is None else f"node pool {name}"


def _by_pool(job: Job) -> str | None:
    pool = job.spec.node_pool
    return None if pool is None else pool.instance_type or pool.node_selector.get(TYPE_LABEL)


def _by_affinity(user: Fields) -> str | None:
    affinity = mapping(mapping(spec_of(user).get("affinity")).get("nodeAffinity"))
    terms = entries(mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")), "nodeSelectorTerms")
    # Any of the terms is enough for the scheduler: each has to name the type, and all the same one.
    named = {_by_term(term) for term in terms}
    return named.pop() if len(named) == 1 else None


def _by_term(term: Fields) -> str | None:
    for expression in entries(term, "matchExpressions"):
        values = expression.get("values")
        if expression.get("key") != TYPE_LABEL or expression.get("operator") != "In" or not isinstance(values, list):
            continue
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
    return None

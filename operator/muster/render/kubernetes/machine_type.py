"""Find the instance type that a job requests for a node. Pure."""

from dataclasses import dataclass

from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.api.spec.node_pool import TYPE_LABEL
from muster.core.instances import InstanceHardware, find_instance_type
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_entries, get_pod_spec

_ML = "ml."


@dataclass(frozen=True)
class MachineType:
    """An instance type: its name, the job's field that contains it, and its facts (None for an unknown type)."""

    name: str
    source: str
    facts: InstanceHardware | None


def find_machine_type(job: Job, user_fields: Fields) -> MachineType | None:
    """Return the instance type of a pod with the user's fields `user_fields`; None unless the job has exactly one."""
    # As in the pod, the template overrides the pool.
    for name, source in (
        (read_mapping(get_pod_spec(user_fields).get("nodeSelector")).get(TYPE_LABEL), "spec.template"),
        (_find_type_in_affinity(user_fields), "spec.template"),
        (_find_type_in_pool(job), get_pool_source(job)),
    ):
        if isinstance(name, str) and name:
            return MachineType(name, source, find_instance_type(name))
    return None


def get_sagemaker_name(machine: MachineType) -> str:
    """Return SageMaker's name of the instance type, such as ml.p4d.24xlarge."""
    return machine.name if machine.name.startswith(_ML) else f"{_ML}{machine.name}"


def get_pool_source(job: Job) -> str:
    """Return the source of the pool's settings, which `muster explain` prints."""
    name = None if job.spec.node_pool is None else job.spec.node_pool.name
    return "spec.nodePool" if name is None else f"node pool {name}"


def _find_type_in_pool(job: Job) -> str | None:
    pool = job.spec.node_pool
    return None if pool is None else pool.instance_type or pool.node_selector.get(TYPE_LABEL)


def _find_type_in_affinity(user_fields: Fields) -> str | None:
    affinity = read_mapping(read_mapping(get_pod_spec(user_fields).get("affinity")).get("nodeAffinity"))
    terms = get_entries(
        read_mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")), "nodeSelectorTerms"
    )
    # The scheduler accepts a machine that matches any term, so all terms must require the same type.
    types = {_find_type_in_term(term) for term in terms}
    return types.pop() if len(types) == 1 else None


def _find_type_in_term(term: Fields) -> str | None:
    for expression in get_entries(term, "matchExpressions"):
        values = expression.get("values")
        if expression.get("key") != TYPE_LABEL or expression.get("operator") != "In" or not isinstance(values, list):
            continue
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
    return None

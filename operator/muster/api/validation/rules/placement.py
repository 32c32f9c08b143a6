"""Rules about `spec.nodePool` and `spec.queue`."""

import re
from collections.abc import Iterator

from muster.api.document import quote
from muster.api.spec.job import Spec
from muster.api.spec.node_pool import ONE_TYPE_MESSAGE, TYPE_LABEL, NodePool, PoolFields, find_type_conflict
from muster.api.validation.rule import Rule, Violation

_AWS_INSTANCE_TYPE = re.compile(r"[a-z][a-z0-9-]*[.](nano|micro|small|medium|large|[0-9]*xlarge|metal(-[0-9]+xl)?)")
"""Amazon EC2 User Guide, "Naming conventions": series, generation and options, a dot, a size."""

_POOL_FIELDS = tuple(PoolFields.model_fields)


def _check_name_with_fields(spec: Spec) -> Iterator[Violation]:
    pool = spec.node_pool
    if pool is None or pool.name is None:
        return
    field_names = [NodePool.model_fields[field].alias or field for field in _POOL_FIELDS if getattr(pool, field)]
    if field_names:
        yield Violation(("nodePool",), f"name {quote(pool.name)} together with {', '.join(field_names)}")


def _check_type_conflict(spec: Spec) -> Iterator[Violation]:
    type_conflict = None if spec.node_pool is None else find_type_conflict(spec.node_pool)
    if type_conflict is not None:
        yield Violation(("nodePool",), type_conflict)


def _check_instance_type_case(spec: Spec) -> Iterator[Violation]:
    name = None if spec.node_pool is None else spec.node_pool.instance_type
    # Check only AWS types, because types of other clouds contain capitals.
    if name is not None and name != name.lower() and _AWS_INSTANCE_TYPE.fullmatch(name.lower()):
        yield Violation(("nodePool", "instanceType"), f"{quote(name)} where {name.lower()} is probably meant")


def _check_queues(spec: Spec) -> Iterator[Violation]:
    if spec.queue is None:
        return
    queues = [name for name in ("kueue", "volcano", "coscheduling") if getattr(spec.queue, name) is not None]
    if len(queues) != 1:
        yield Violation(("queue",), " and ".join(queues) or "none")


def _build_has_cel(name: str) -> str:
    return f"has(self.{name})"


_SCALAR_FIELDS = ("instanceType", "zone", "machine")
_LIST_FIELDS = ("nodeSelector", "tolerations", "sameLabels")

PLACEMENT_RULES = (
    Rule(
        schema_paths=("spec.nodePool",),
        rationale="It would be unclear whether the pool's value or the job's value of a field applies.",
        message="set either the name of a pool or the other fields; to change fields of a named pool, use"
        " spec.template",
        find_violations=_check_name_with_fields,
        cel="!has(self.name) || !("
        + " || ".join(
            [
                *map(_build_has_cel, _SCALAR_FIELDS),
                *(f"{_build_has_cel(name)} && self.{name}.size() > 0" for name in _LIST_FIELDS),
            ]
        )
        + ")",
    ),
    Rule(
        schema_paths=("spec.nodePool",),
        rationale="The pod would request devices of one instance type on nodes of the other.",
        message=ONE_TYPE_MESSAGE,
        find_violations=_check_type_conflict,
        cel=f"!has(self.instanceType) || !has(self.nodeSelector) || !('{TYPE_LABEL}' in self.nodeSelector)"
        f" || self.nodeSelector['{TYPE_LABEL}'] == self.instanceType",
    ),
    Rule(
        schema_paths=("spec.nodePool.instanceType",),
        rationale="No Kubernetes node has such a label, so the pod would stay pending.",
        message="AWS instance types are lower case, and labels are case-sensitive; write it in lower case",
        find_violations=_check_instance_type_case,
    ),
    Rule(
        schema_paths=("spec.queue",),
        rationale="Two queues would wait for each other.",
        message="exactly one of kueue, volcano and coscheduling must be set, for example kueue: team-a",
        find_violations=_check_queues,
        cel="[has(self.kueue), has(self.volcano), has(self.coscheduling)].exists_one(chosen, chosen)",
    ),
)

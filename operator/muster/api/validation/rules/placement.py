"""Rules about where a job's nodes run, and which queue admits them."""

import re
from collections.abc import Iterator

from muster.api.document import quoted
from muster.api.spec.job import Spec
from muster.api.spec.node_pool import ONE_TYPE, TYPE_LABEL, NodePool, PoolFields, two_types
from muster.api.validation.rule import Breach, Rule

_OF_AWS = re.compile(r"[a-z][a-z0-9-]*[.](nano|micro|small|medium|large|[0-9]*xlarge|metal(-[0-9]+xl)?)")
"""Amazon EC2 User Guide, "Naming conventions": series, generation and options, a dot, a size."""

_WORDS = tuple(PoolFields.model_fields)


def _named_and_described(spec: Spec) -> Iterator[Breach]:
    pool = spec.node_pool
    if pool is None or pool.name is None:
        return
    beside = [NodePool.model_fields[word].alias or word for word in _WORDS if getattr(pool, word)]
    if beside:
        yield Breach(("nodePool",), f"name {quoted(pool.name)} beside {', '.join(beside)}")


def _types(spec: Spec) -> Iterator[Breach]:
    result = None if spec.node_pool is None else two_types(spec.node_pool)
    if result is not None:
        yield Breach(("nodePool",), result)


def _capitals(spec: Spec) -> Iterator[Breach]:
    name = None if spec.node_pool is None else spec.node_pool.instance_type
    # other clouds' types have capitals, and other forms
    if name is not None and name != name.lower() and _OF_AWS.fullmatch(name.lower()):
        yield Breach(("nodePool", "instanceType"), f"{quoted(name)} where {name.lower()} seems to be meant")


def _queues(spec: Spec) -> Iterator[Breach]:
    if spec.queue is None:
        return
    chosen = [name for name in ("kueue", "volcano", "coscheduling") if getattr(spec.queue, name) is not None]
    if len(chosen) != 1:
        yield Breach(("queue",), " and ".join(chosen) or "none of them")


def _has(name: str) -> str:
    return f"has(self.{name})"


_SINGLE = ("instanceType", "zone", "machine")
_MANY = ("nodeSelector", "tolerations", "sameLabels")

PLACEMENT_RULES = (
    Rule(
        places=("spec.nodePool",),
        why="For each field, users would have to remember whether the pool's value or the job's applies.",
        sentence="a pool is named, or described by the other fields; write what differs from a named pool into"
        " spec.template",
        breaches=_named_and_described,
        cel="!has(self.name) || !("
        + " || ".join([*map(_has, _SINGLE), *(f"{_has(name)} && self.{name}.size() > 0" for name in _MANY)])
        + ")",
    ),
    Rule(
        places=("spec.nodePool",),
        why="The pod would request the devices of one type and be scheduled on nodes of the other.",
        sentence=ONE_TYPE,
        breaches=_types,
        cel=f"!has(self.instanceType) || !has(self.nodeSelector) || !('{TYPE_LABEL}' in self.nodeSelector)"
        f" || self.nodeSelector['{TYPE_LABEL}'] == self.instanceType",
    ),
    Rule(
        places=("spec.nodePool.instanceType",),
        why="No Kubernetes node has such a label, and the pod would stay pending.",
        sentence="AWS instance types are lower case, and labels are case-sensitive; write it in lower case",
        breaches=_capitals,
    ),
    Rule(
        places=("spec.queue",),
        why="Two queues would wait for each other.",
        sentence="exactly one of kueue, volcano and coscheduling must be set, for example kueue: team-a",
        breaches=_queues,
        cel="[has(self.kueue), has(self.volcano), has(self.coscheduling)].exists_one(chosen, chosen)",
    ),
)

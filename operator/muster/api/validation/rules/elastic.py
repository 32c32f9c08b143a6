"""Rules about `spec.elastic`."""

from collections.abc import Iterator

from muster.api.backends import list_backends_with_collector
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation

_FIELD = ("elastic",)


def _check_limits(spec: Spec) -> Iterator[Violation]:
    elastic = spec.elastic
    if elastic is not None and not elastic.min_nodes <= spec.nodes <= elastic.max_nodes:
        limits = f"elastic.minNodes {elastic.min_nodes} and elastic.maxNodes {elastic.max_nodes}"
        yield Violation(("nodes",), f"{spec.nodes} with {limits}")


def _check_backend(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and not spec.traits.has_collector:
        yield Violation(_FIELD, f"elastic with backend {spec.backend}")


def _check_failure_policy(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and spec.failure_policy is None:
        yield Violation(_FIELD, "elastic without failurePolicy")


def _check_restart_scope(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and spec.failure_policy is not None and spec.failure_policy.restart_scope == "Pods":
        yield Violation(_FIELD, "elastic with failurePolicy.restartScope Pods")


def _check_spares(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and spec.spares:
        yield Violation(_FIELD, f"elastic with {spec.spares} spares")


def _check_overrides(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and spec.node_overrides:
        yield Violation(_FIELD, "elastic with nodeOverrides")


def _check_kueue(spec: Spec) -> Iterator[Violation]:
    if spec.elastic is not None and spec.queue is not None and spec.queue.kueue is not None:
        yield Violation(_FIELD, "elastic with queue.kueue")


def _check_sharded_inputs(spec: Spec) -> Iterator[Violation]:
    for channel in spec.inputs if spec.elastic is not None else ():
        if channel.s3 is not None and channel.s3.distribution == "ShardedByS3Key":
            yield Violation(_FIELD, f"elastic with the sharded input {channel.name}")


_NOT_ELASTIC = "!has(self.elastic)"

ELASTIC_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="The job could neither start with this number of nodes nor change to it.",
        message="nodes must be at least elastic.minNodes and at most elastic.maxNodes; change nodes or the limits",
        find_violations=_check_limits,
        cel=f"{_NOT_ELASTIC} || self.elastic.minNodes <= self.nodes && self.nodes <= self.elastic.maxNodes",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="A training job has a fixed number of instances.",
        message=f"elastic works only with backend: {' or '.join(list_backends_with_collector())}; remove the field",
        find_violations=_check_backend,
        cel=" || ".join((_NOT_ELASTIC, *(f"self.backend == '{name}'" for name in list_backends_with_collector()))),
    ),
    Rule(
        schema_paths=("spec",),
        rationale="Without restarts, the loss of a node ends the job.",
        message="an elastic job continues after the loss of a node only by a restart; set failurePolicy, for example "
        "failurePolicy: {maxRestarts: 3}",
        find_violations=_check_failure_policy,
        cel=f"{_NOT_ELASTIC} || has(self.failurePolicy)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="This scope also replaces the pods of nodes that are not lost.",
        message="restartScope: Pods replaces all pods at each restart, so that no node stays ready; use "
        "restartScope: InPlace, or remove elastic",
        find_violations=_check_restart_scope,
        cel=f"{_NOT_ELASTIC} || !has(self.failurePolicy) || self.failurePolicy.restartScope != 'Pods'",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="After the loss of a node, a spare would replace it and elastic would continue without it.",
        message="spares keep the number of nodes, elastic changes it; remove spares or elastic",
        find_violations=_check_spares,
        cel=f"{_NOT_ELASTIC} || self.spares == 0",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="An override belongs to a node rank, and a node's rank changes with the members.",
        message="any node of an elastic job may have any node rank, so all pods have to be equal; move the fields of "
        "nodeOverrides to spec.template, or remove elastic",
        find_violations=_check_overrides,
        cel=f"{_NOT_ELASTIC} || !has(self.nodeOverrides) || size(self.nodeOverrides) == 0",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="Kueue counts the pods of a group and waits for a missing one.",
        message="Kueue admits a fixed number of pods; use another queue, or remove elastic",
        find_violations=_check_kueue,
        cel=f"{_NOT_ELASTIC} || !has(self.queue) || !has(self.queue.kueue)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="After the loss of a node, no other node would have its part of the data.",
        message="each node downloads its part once, before the number of nodes changes; use "
        "distribution: FullyReplicated, or remove elastic",
        find_violations=_check_sharded_inputs,
        cel=f"{_NOT_ELASTIC} || !has(self.inputs) || self.inputs.all(channel,"
        " !has(channel.s3) || channel.s3.distribution != 'ShardedByS3Key')",
    ),
)

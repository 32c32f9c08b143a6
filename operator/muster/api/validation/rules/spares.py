"""Rules about `spec.spares`."""

from collections.abc import Iterator

from muster.api.backends import list_backends_with_collector
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation

_FIELD = ("spares",)


def _check_backend(spec: Spec) -> Iterator[Violation]:
    if spec.spares and not spec.traits.has_collector:
        yield Violation(_FIELD, f"{spec.spares} with backend {spec.backend}")


def _check_failure_policy(spec: Spec) -> Iterator[Violation]:
    if spec.spares and spec.failure_policy is None:
        yield Violation(_FIELD, f"{spec.spares} without failurePolicy")


def _check_restart_scope(spec: Spec) -> Iterator[Violation]:
    if spec.spares and spec.failure_policy is not None and spec.failure_policy.restart_scope == "Pods":
        yield Violation(_FIELD, f"{spec.spares} with failurePolicy.restartScope Pods")


def _check_overrides(spec: Spec) -> Iterator[Violation]:
    if spec.spares and spec.node_overrides:
        yield Violation(_FIELD, f"{spec.spares} with nodeOverrides")


def _check_sharded_inputs(spec: Spec) -> Iterator[Violation]:
    for channel in spec.inputs if spec.spares else ():
        if channel.s3 is not None and channel.s3.distribution == "ShardedByS3Key":
            yield Violation(_FIELD, f"{spec.spares} with the sharded input {channel.name}")


_NO_SPARES = "self.spares == 0"

SPARE_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="muster would ignore spares. On SageMaker, keepAliveSeconds keeps instances for the next attempt.",
        message=f"spares work only with backend: {' or '.join(list_backends_with_collector())}; remove the field",
        find_violations=_check_backend,
        cel=" || ".join((_NO_SPARES, *(f"self.backend == '{name}'" for name in list_backends_with_collector()))),
    ),
    Rule(
        schema_paths=("spec",),
        rationale="Without a restart no spare ever takes a node's place.",
        message="a spare takes a node's place only when muster restarts the job; set failurePolicy, for example "
        "failurePolicy: {maxRestarts: 3}",
        find_violations=_check_failure_policy,
        cel=f"{_NO_SPARES} || has(self.failurePolicy)",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="This scope replaces all pods, also the ready ones.",
        message="restartScope: Pods replaces all pods at each restart, so that no spare is ever ready; use "
        "restartScope: InPlace, or remove spares",
        find_violations=_check_restart_scope,
        cel=f"{_NO_SPARES} || !has(self.failurePolicy) || self.failurePolicy.restartScope != 'Pods'",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="An override belongs to a node, and a pod can't change when it takes another node's place.",
        message="a spare must be able to take any node's place, so all pods have to be equal; move the fields of "
        "nodeOverrides to spec.template, or remove spares",
        find_violations=_check_overrides,
        cel=f"{_NO_SPARES} || !has(self.nodeOverrides) || size(self.nodeOverrides) == 0",
    ),
    Rule(
        schema_paths=("spec",),
        rationale="A spare downloads its data before muster decides which node it replaces.",
        message="a spare downloads its data before muster decides which node it replaces; use "
        "distribution: FullyReplicated, or remove spares",
        find_violations=_check_sharded_inputs,
        cel=f"{_NO_SPARES} || !has(self.inputs) || self.inputs.all(channel,"
        " !has(channel.s3) || channel.s3.distribution != 'ShardedByS3Key')",
    ),
)

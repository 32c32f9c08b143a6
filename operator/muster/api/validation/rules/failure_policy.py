"""Rules about `spec.failurePolicy`."""

from collections.abc import Iterator

from muster.api.backends import list_backends_with_collector
from muster.api.spec.failure_policy import DEFAULT_DISRUPTIONS, DEFAULT_FENCE_SECONDS, MAX_HISTORY
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation

_PATH = "spec.failurePolicy"


def _check_agent_fields(spec: Spec) -> Iterator[Violation]:
    policy = spec.failure_policy
    if policy is None or spec.traits.has_collector:
        return
    fields = {
        "windowSeconds": policy.window_seconds is not None,
        "maxDisruptions": policy.max_disruptions != DEFAULT_DISRUPTIONS,
        "hangTimeoutSeconds": policy.hang_timeout_seconds is not None,
        "restartScope": policy.restart_scope != "InPlace",
        "fenceSeconds": policy.fence_seconds != DEFAULT_FENCE_SECONDS,
        "rules": policy.rules != (),
    }
    for name, is_set in fields.items():
        if is_set:
            yield Violation(("failurePolicy", name), f"failurePolicy.{name} with backend {spec.backend}")


def _check_window_limit(spec: Spec) -> Iterator[Violation]:
    policy = spec.failure_policy
    if policy is None or policy.window_seconds is None:
        return
    total = policy.max_restarts + policy.max_disruptions
    if total > MAX_HISTORY:
        yield Violation(("failurePolicy", "maxRestarts"), f"maxRestarts + maxDisruptions = {total} with windowSeconds")


def _check_empty_rules(spec: Spec) -> Iterator[Violation]:
    for index, rule in enumerate(() if spec.failure_policy is None else spec.failure_policy.rules):
        if not any((rule.exit_codes, rule.signals, rule.reasons, rule.ranks, rule.nodes)):
            yield Violation(("failurePolicy", "rules", index), "a rule without a property of a failure")


_UNSET_FIELDS_CEL = (
    "!has(self.failurePolicy.windowSeconds)",
    "!has(self.failurePolicy.hangTimeoutSeconds)",
    f"self.failurePolicy.maxDisruptions == {DEFAULT_DISRUPTIONS}",
    "self.failurePolicy.restartScope == 'InPlace'",
    f"self.failurePolicy.fenceSeconds == {DEFAULT_FENCE_SECONDS}",
    "(!has(self.failurePolicy.rules) || size(self.failurePolicy.rules) == 0)",
)

FAILURE_POLICY_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="muster would ignore these fields.",
        message="failurePolicy.windowSeconds, maxDisruptions, hangTimeoutSeconds, restartScope, fenceSeconds and rules "
        f"work only with backend: {' or '.join(list_backends_with_collector())} so far; remove them",
        find_violations=_check_agent_fields,
        cel=" || ".join(
            (
                "!has(self.failurePolicy)",
                *(f"self.backend == '{name}'" for name in list_backends_with_collector()),
                f"({' && '.join(_UNSET_FIELDS_CEL)})",
            )
        ),
    ),
    Rule(
        schema_paths=(_PATH,),
        rationale=f"The status keeps the times of the last {MAX_HISTORY} failures only.",
        message=f"with windowSeconds, the sum of maxRestarts and maxDisruptions must be at most {MAX_HISTORY}",
        find_violations=_check_window_limit,
        cel=f"!has(self.windowSeconds) || self.maxRestarts + self.maxDisruptions <= {MAX_HISTORY}",
    ),
    Rule(
        schema_paths=(f"{_PATH}.rules[]",),
        rationale="An empty rule would match every failure, and the rules after it would never apply.",
        message="a rule must set at least one of exitCodes, signals, reasons, ranks and nodes",
        find_violations=_check_empty_rules,
        cel=" || ".join(
            f"(has(self.{name}) && size(self.{name}) > 0)"
            for name in ("exitCodes", "signals", "reasons", "ranks", "nodes")
        ),
    ),
)

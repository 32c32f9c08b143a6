"""Rules about `spec.failurePolicy`."""

from collections.abc import Iterator

from muster.api.rule import Breach, Rule
from muster.api.spec import Spec


def _elsewhere(spec: Spec) -> Iterator[Breach]:
    if spec.failure_policy is not None and spec.backend != "SageMaker":
        yield Breach(("failurePolicy",), f"failurePolicy with backend {spec.backend}")


FAILURE_POLICY_RULES = (
    Rule(
        places=("spec",),
        why="The user would expect restarts that never happen.",
        sentence="failurePolicy works only with backend: SageMaker so far; remove it",
        breaches=_elsewhere,
        cel="!has(self.failurePolicy) || self.backend == 'SageMaker'",
    ),
)

"""Rules about what is done about failures."""

from collections.abc import Iterator

from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule


def _elsewhere(spec: Spec) -> Iterator[Breach]:
    if spec.failure_policy is not None and spec.backend != "SageMaker":
        yield Breach(("failurePolicy",), f"failurePolicy with backend {spec.backend}")


FAILURE_POLICY_RULES = (
    Rule(
        places=("spec",),
        why="Who asks for restarts would believe that they come.",
        sentence="only jobs of backend: SageMaker are started again after a failure so far; leave failurePolicy out",
        breaches=_elsewhere,
        cel="!has(self.failurePolicy) || self.backend == 'SageMaker'",
    ),
)

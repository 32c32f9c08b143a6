"""Rules about what is done about failures."""

from collections.abc import Iterator

from muster.api.rule import Breach, Rule
from muster.api.spec import Spec


def _elsewhere(spec: Spec) -> Iterator[Breach]:
    if spec.recovery is not None and spec.backend != "SageMaker":
        yield Breach(("recovery",), f"recovery with backend {spec.backend}")


RECOVERY_RULES = (
    Rule(
        places=("spec",),
        why="Who asks for restarts would believe that they come.",
        sentence="only jobs of backend: SageMaker are started again after a failure so far; leave recovery out",
        breaches=_elsewhere,
        cel="!has(self.recovery) || self.backend == 'SageMaker'",
    ),
)

"""Rules about what is done about failures."""

from collections.abc import Iterator

from muster.api.backends import with_restarts
from muster.api.rule import Breach, Rule
from muster.api.spec import Spec


def _elsewhere(spec: Spec) -> Iterator[Breach]:
    if spec.failure_policy is not None and not spec.traits.has_restarts:
        yield Breach(("failurePolicy",), f"failurePolicy with backend {spec.backend}")


FAILURE_POLICY_RULES = (
    Rule(
        places=("spec",),
        why="Who asks for restarts would believe that they come.",
        sentence=f"only jobs of backend: {' or '.join(with_restarts())} are started again after a failure so far; "
        "leave failurePolicy out",
        breaches=_elsewhere,
        cel=" || ".join(("!has(self.failurePolicy)", *(f"self.backend == '{name}'" for name in with_restarts()))),
    ),
)

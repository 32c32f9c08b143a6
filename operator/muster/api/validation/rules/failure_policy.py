"""Rules about `spec.failurePolicy`."""

from collections.abc import Iterator

from muster.api.backends import with_restarts
from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule


def _elsewhere(spec: Spec) -> Iterator[Breach]:
    if spec.failure_policy is not None and not spec.traits.has_restarts:
        yield Breach(("failurePolicy",), f"failurePolicy with backend {spec.backend}")


FAILURE_POLICY_RULES = (
    Rule(
        places=("spec",),
        why="The user would expect restarts that never happen.",
        sentence=f"failurePolicy works only with backend: {' or '.join(with_restarts())} so far; remove it",
        breaches=_elsewhere,
        cel=" || ".join(("!has(self.failurePolicy)", *(f"self.backend == '{name}'" for name in with_restarts()))),
    ),
)

"""Rules about `spec.failurePolicy`."""

from collections.abc import Iterator

from muster.api.backends import restarting_backends
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation


def _check_backend(spec: Spec) -> Iterator[Violation]:
    if spec.failure_policy is not None and not spec.traits.supports_restarts:
        yield Violation(("failurePolicy",), f"failurePolicy with backend {spec.backend}")


FAILURE_POLICY_RULES = (
    Rule(
        schema_paths=("spec",),
        why="The user would expect restarts that never happen.",
        message=f"failurePolicy works only with backend: {' or '.join(restarting_backends())} so far; remove it",
        find_violations=_check_backend,
        cel=" || ".join(("!has(self.failurePolicy)", *(f"self.backend == '{name}'" for name in restarting_backends()))),
    ),
)

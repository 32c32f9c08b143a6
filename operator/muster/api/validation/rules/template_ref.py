"""The rule about `spec.templateRef`."""

from collections.abc import Iterator

from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation


def _check_is_merged(spec: Spec) -> Iterator[Violation]:
    reference = spec.template_ref
    if reference is not None and reference.generation is None:
        yield Violation(("templateRef",), f"{reference.kind} {reference.name}, which is not merged into the job")


TEMPLATE_REF_RULES = (
    Rule(
        schema_paths=("spec",),
        rationale="The job would run without the template's settings.",
        message="muster merges the template when the job is created, if the chart has webhook.enabled; for a file, use "
        "the option --template",
        find_violations=_check_is_merged,
        cel="!has(self.templateRef) || has(self.templateRef.generation)",
    ),
)

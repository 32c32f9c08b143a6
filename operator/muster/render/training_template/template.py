"""Read a TrainingTemplate or a ClusterTrainingTemplate from a document."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON, Document, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.names import (
    API_VERSION,
    CLUSTER_TEMPLATE_KIND,
    KIND,
    MAX_NAMESPACE_CHARS,
    NAMESPACE_PATTERN,
    TEMPLATE_KIND,
)
from muster.api.spec.template_ref import TemplateKind
from muster.api.template_crds import OWN_FIELDS
from muster.api.validation.rules.pods.field_rules import POD_FIELD_RULES
from muster.api.validation.rules.pods.template import TEMPLATE_RULES
from muster.api.validation.validate import PLACEHOLDERS, validate

TEMPLATE_KINDS: tuple[TemplateKind, ...] = (TEMPLATE_KIND, CLUSTER_TEMPLATE_KIND)

_VALIDATED_NAME = "template"


@dataclass(frozen=True)
class TrainingTemplate:
    """A template with a valid spec. `generation` is 0 for a template from a file."""

    kind: TemplateKind
    name: str
    spec: Mapping[str, JSON]
    generation: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def is_template(document: Document) -> bool:
    """Whether the document has the kind of a template, even if it is invalid."""
    value = document.value
    return isinstance(value, dict) and value.get("kind") in TEMPLATE_KINDS


def read_template(document: Document) -> TrainingTemplate:
    """Return the document's template. Raises `InvalidResource` with its problems.

    The rules that compare several fields apply to the job into which the template is merged, because a template has
    only some of its fields. Those of the partial pod concern only that field.
    """
    value = read_mapping(document.value)
    problems = [*_find_identity_problems(value), *_find_own_fields(read_mapping(value.get("spec")))]
    if not isinstance(value.get("spec"), dict):
        problems.append(FieldProblem("spec", "missing, and required: the fields that jobs take from the template"))
    if problems:
        lined = (_add_line(document, problem) for problem in problems)
        raise InvalidResource(tuple(lined), document.source)
    metadata, spec = read_mapping(value["metadata"]), read_mapping(value["spec"])
    _validate_spec(document, spec)
    generation = metadata.get("generation")
    return TrainingTemplate(
        CLUSTER_TEMPLATE_KIND if value["kind"] == CLUSTER_TEMPLATE_KIND else TEMPLATE_KIND,
        str(metadata["name"]),
        {name: field for name, field in spec.items() if field is not None},
        generation if isinstance(generation, int) else 0,
    )


def _find_identity_problems(value: Mapping[str, JSON]) -> list[FieldProblem]:
    problems = []
    if value.get("kind") not in TEMPLATE_KINDS:
        problems.append(FieldProblem("kind", f"{' or '.join(TEMPLATE_KINDS)} is expected"))
    if value.get("apiVersion") != API_VERSION:
        problems.append(FieldProblem("apiVersion", f"{API_VERSION} is expected"))
    name = read_mapping(value.get("metadata")).get("name")
    if not isinstance(name, str):
        problems.append(FieldProblem("metadata.name", "missing, and required"))
    elif len(name) > MAX_NAMESPACE_CHARS or not re.fullmatch(NAMESPACE_PATTERN, name):
        message = f"found {quote(name)}; at most {MAX_NAMESPACE_CHARS} small letters, digits and dashes are allowed"
        problems.append(FieldProblem("metadata.name", message))
    unknown = (name for name in value if name not in ("apiVersion", "kind", "metadata", "spec"))
    problems += [FieldProblem(quote(name), "unknown field; remove it") for name in unknown]
    return problems


def _find_own_fields(spec: Mapping[str, JSON]) -> list[FieldProblem]:
    message = "a template can't set this field: each job sets it itself"
    return [FieldProblem(f"spec.{name}", message) for name in OWN_FIELDS if spec.get(name) is not None]


def _add_line(document: Document, problem: FieldProblem) -> FieldProblem:
    return FieldProblem(problem.path, problem.message, document.find_line(tuple(problem.path.split("."))))


def _validate_spec(document: Document, spec: Mapping[str, JSON]) -> None:
    """Check the types and limits of the fields. Raises `InvalidResource`."""
    # A template may leave the required fields to the job.
    job: JSON = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": _VALIDATED_NAME},
        "spec": {**PLACEHOLDERS, **spec},
    }
    validate(Document(job, document.source, document.lines), rules=(*TEMPLATE_RULES, *POD_FIELD_RULES))

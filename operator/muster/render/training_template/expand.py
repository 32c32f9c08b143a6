"""Make a job's document complete with its template, and name the template in problems of its values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from muster.api.document import JSON, Document, FieldPath, format_path, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.api.spec.template_ref import TemplateRef
from muster.api.validation.validate import validate
from muster.render.training_template.merge import Origin, merge_specs
from muster.render.training_template.template import TEMPLATE_KINDS, TrainingTemplate

REFERENCE = "templateRef"


@dataclass(frozen=True)
class ExpandedJob:
    """A job's document with the values of its template. `origins` are the paths below `spec` that have them."""

    document: Document
    template: TrainingTemplate | None = None
    origins: Mapping[FieldPath, Origin] = field(default_factory=dict)

    def describe_origin(self, path: str) -> str | None:
        """Return where the value at a formatted path (`spec.image`) comes from; None if it is the job's own."""
        for origin_path, origin in self.origins.items():
            prefix = format_path(("spec", *origin_path))
            if path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")):
                return str(self.template) if origin is Origin.TEMPLATE else f"the job and {self.template}"
        return None


def find_reference(document: Document) -> JSON:
    """Return the job's `spec.templateRef` if its template is not merged yet; None otherwise. It may be invalid."""
    reference = read_mapping(read_mapping(document.value).get("spec")).get(REFERENCE)
    if isinstance(reference, dict) and reference.get("generation") is not None:
        return None
    return reference


def read_reference(reference: JSON) -> TemplateRef:
    """Return the reference. Raises `InvalidResource`."""
    try:
        return TemplateRef.model_validate(reference, by_alias=True, by_name=False)
    except ValidationError:
        found = json.dumps(reference, ensure_ascii=False)
        message = f"found {quote(found)}; expected are the fields name and kind: {' or '.join(TEMPLATE_KINDS)}"
        raise InvalidResource((FieldProblem(f"spec.{REFERENCE}", message),)) from None


def expand(document: Document, template: TrainingTemplate) -> ExpandedJob:
    """Return the job of `document` with the template's values and without the reference to it.

    The document may still be invalid.
    """
    value = read_mapping(document.value)
    spec = read_mapping(value.get("spec"))
    merged = merge_specs(template.spec, {name: item for name, item in spec.items() if name != REFERENCE})
    expanded: JSON = {**value, "spec": dict(merged.spec)}
    lines = {_shift(path, merged.origins): line for path, line in document.lines.items()}
    return ExpandedJob(replace(document, value=expanded, lines=lines), template, merged.origins)


def _shift(path: FieldPath, origins: Mapping[FieldPath, Origin]) -> FieldPath:
    """Return the path after the merge: the template's entries of a list are before the job's."""
    if len(path) < len(("spec", "list", "entry")) or path[0] != "spec" or not isinstance(path[2], int):
        return path
    entries = sum(len(origin) == len(("list", "entry")) and origin[0] == path[1] for origin in origins)
    return (*path[:2], path[2] + entries, *path[3:])


def validate_expanded(job: ExpandedJob) -> Job:
    """Validate the job. Raises `InvalidResource`, whose problems say which values come from the template."""
    try:
        return validate(job.document)
    except InvalidResource as error:
        problems = tuple(name_template(job, problem) for problem in error.problems)
        raise InvalidResource(problems, error.source, error.omitted_count, error.reason) from None


def name_template(job: ExpandedJob, problem: FieldProblem) -> FieldProblem:
    """Return the problem with the template whose value it is about. Such a value has no line in the job's file."""
    origin = job.describe_origin(problem.path)
    if origin is None:
        return problem
    return replace(problem, message=f"{problem.message} (the value comes from {origin})", line=None)

"""Merge the template of a job at the API server's request: a patch of the job, or its problems.

A job keeps its template's spec in an annotation. If a user applies the file of an existing job again, the new object
lacks some of the template's values, and muster merges them again.
"""

import base64
import json
from collections.abc import Mapping

from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.names import MAX_TEMPLATE_CHARS, TEMPLATE_ANNOTATION
from muster.api.spec.template_ref import TemplateRef
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CLUSTER_TRAINING_TEMPLATES, TRAINING_TEMPLATES, Kind, Object
from muster.render.training_template.expand import REFERENCE, expand, read_reference, validate_expanded
from muster.render.training_template.template import TrainingTemplate, read_template

_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TRAINING_TEMPLATES, CLUSTER_TRAINING_TEMPLATES)}
_ESCAPED_ANNOTATION = TEMPLATE_ANNOTATION.replace("~", "~0").replace("/", "~1")


def get_kind(reference: TemplateRef) -> Kind:
    """Return the kind of the template."""
    return _KINDS[reference.kind]


def get_reference(job: Object) -> JSON:
    """Return the job's `spec.templateRef`; None without one. It may be invalid."""
    return read_mapping(job.get("spec")).get(REFERENCE)


def is_merged_copy(job: Object) -> bool:
    """Whether a new job has its template's values already, as a job that is restored from a backup."""
    return read_mapping(get_reference(job)).get("generation") is not None and _read_annotation(job) is not None


def find_kept_template(job: Object, old_job: Object) -> TrainingTemplate | None:
    """Return the template that the stored job keeps, for a change of it; None if it keeps none.

    Raises `InvalidResource` for another reference: the stored spec does not show which values the old template gave.
    """
    old_reference, spec = get_reference(old_job), _read_annotation(old_job)
    if old_reference is None or spec is None:
        return None
    old, new = read_reference(old_reference), read_reference(get_reference(job))
    if (old.kind, old.name) != (new.kind, new.name):
        raise InvalidResource((FieldProblem(f"spec.{REFERENCE}", "the template of a job can't change"),))
    return TrainingTemplate(old.kind, old.name, spec, old.generation or 0)


def read_current_template(template: Object) -> TrainingTemplate:
    """Return the template of the API server. Raises `InvalidResource`, whose problems are about the reference to it."""
    name = f"{template.get('kind')} {read_mapping(template.get('metadata')).get('name')}"
    try:
        result = read_template(Document(dict(template), "template"))
    except InvalidResource as error:
        problems = tuple(FieldProblem(f"spec.{REFERENCE}", f"{name} is invalid: {each}") for each in error.problems)
        raise InvalidResource(problems) from None
    if len(_format(result)) > MAX_TEMPLATE_CHARS:
        message = f"{name} has more than {MAX_TEMPLATE_CHARS} characters; move its data to a ConfigMap"
        raise InvalidResource((FieldProblem(f"spec.{REFERENCE}", message),))
    return result


def build_patch(job: Object, template: TrainingTemplate) -> dict[str, JSON]:
    """Return the fields of an admission response that merge the template into the job. Raises `InvalidResource`."""
    expanded = expand(Document(dict(job)), template)
    validate_expanded(expanded)
    spec = read_mapping(read_mapping(expanded.document.value).get("spec"))
    reference: JSON = {"kind": template.kind, "name": template.name, "generation": template.generation}
    operations: list[JSON] = [{"op": "replace", "path": "/spec", "value": {REFERENCE: reference, **spec}}]
    if "annotations" not in read_mapping(job.get("metadata")):
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    path = f"/metadata/annotations/{_ESCAPED_ANNOTATION}"
    operations.append({"op": "add", "path": path, "value": _format(template)})
    encoded = base64.b64encode(json.dumps(operations).encode()).decode("ascii")
    return {"patchType": "JSONPatch", "patch": encoded}


def describe_missing(reference: TemplateRef, namespace: str, error: ApiError) -> FieldProblem:
    """Return the problem of a template that could not be read."""
    place = f" in the namespace {namespace}" if reference.kind == TRAINING_TEMPLATES.name else ""
    if error.is_not_found:
        plural = get_kind(reference).plural
        message = f"there is no {reference.kind} {reference.name}{place}; `kubectl get {plural}` lists those that exist"
    else:
        message = f"{reference.kind} {reference.name}{place} could not be read: {error.message}; try again"
    return FieldProblem(f"spec.{REFERENCE}", message)


def _format(template: TrainingTemplate) -> str:
    return json.dumps(dict(template.spec), ensure_ascii=False, separators=(",", ":"))


def _read_annotation(job: Object) -> dict[str, JSON] | None:
    """Return the template's spec that the job keeps; None without one. A user may have written any text."""
    text = read_mapping(read_mapping(job.get("metadata")).get("annotations")).get(TEMPLATE_ANNOTATION)
    if not isinstance(text, str):
        return None
    try:
        spec: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return spec if isinstance(spec, dict) else None

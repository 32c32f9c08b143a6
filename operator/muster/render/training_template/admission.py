"""Answer the API server's request to merge the template of a new job: a patch of its spec, or its problems."""

import base64
import json
from collections.abc import Mapping

from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.template_ref import TemplateRef
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CLUSTER_TRAINING_TEMPLATES, TRAINING_TEMPLATES, Kind, Object
from muster.render.training_template.expand import REFERENCE, expand, validate_expanded
from muster.render.training_template.template import read_template

_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TRAINING_TEMPLATES, CLUSTER_TRAINING_TEMPLATES)}


def get_kind(reference: TemplateRef) -> Kind:
    """Return the kind of the template."""
    return _KINDS[reference.kind]


def merge_template(job: Object, template: Object) -> Mapping[str, JSON]:
    """Return the job's spec with the template's values. Raises `InvalidResource` with the problems of both."""
    document = Document(dict(template), "template")
    try:
        parsed = read_template(document)
    except InvalidResource as error:
        name = f"{template.get('kind')} {_get_name(template)}"
        problems = tuple(FieldProblem(f"spec.{REFERENCE}", f"{name} is invalid: {each}") for each in error.problems)
        raise InvalidResource(problems) from None
    expanded = expand(Document(dict(job)), parsed)
    validate_expanded(expanded)
    value = expanded.document.value
    spec = value["spec"] if isinstance(value, dict) else None
    return spec if isinstance(spec, dict) else {}


def build_patch(spec: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the fields of an admission response that replace the job's spec."""
    operations = [{"op": "replace", "path": "/spec", "value": dict(spec)}]
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


def _get_name(template: Object) -> JSON:
    metadata = template.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None

"""Rules about partial pod templates: the names and types of a pod's fields, and misspelt container names.

They apply only before a job starts, because an older muster may have accepted a running job.
"""

from collections.abc import Iterator
from itertools import islice

from muster.api.document import JSON, FieldPath, quote
from muster.api.names import TRAINER_CONTAINER
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules.pods.fields import WrongField, find_wrong_fields
from muster.api.validation.rules.pods.schema import load_pod_schema
from muster.api.validation.rules.pods.template_shape import (
    LISTS_MERGED_BY_NAME,
    enumerate_entries,
    find_wrong_types,
    list_pods,
)

_MAX_SHOWN_FIELDS = 20
"""Maximum number of fields in one message: each suggestion takes time, and a template may have thousands of fields."""

_MAX_TYPO_DISTANCE = 2
"""Maximum edit distance between `trainer` and a name that counts as misspelt."""


def _find_wrong_fields(spec: Spec) -> Iterator[WrongField]:
    """Yield the wrong fields of the pods, except fields that `TEMPLATE_RULES` report."""
    wrong_type_paths = {path for path, _ in find_wrong_types(spec)}
    result = (field for path, pod in list_pods(spec) for field in find_wrong_fields(pod, path))
    return (field for field in result if field.path not in wrong_type_paths and not _is_merge_key(field.path))


def _is_merge_key(path: FieldPath) -> bool:
    return path[-1] in ("name", "mountPath") and isinstance(path[-2], int) and path[-3] in LISTS_MERGED_BY_NAME


def _check_pod_fields(spec: Spec) -> Iterator[Violation]:
    for field in islice(_find_wrong_fields(spec), _MAX_SHOWN_FIELDS):
        yield Violation(field.path, _describe_wrong_field(field))


def _describe_wrong_field(field: WrongField) -> str:
    if field.expected is not None:
        return f"{_describe(field.value)} where {field.expected} expected"
    nearest = field.nearest
    return quote(str(field.path[-1])) + ("" if nearest is None else f" (did you mean {nearest}?)")


def _describe(value: JSON) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"the text {quote(value)}"
        case list():
            return "a list"
        case dict():
            return "fields"
        case _:
            return str(value)


def _check_misspelt_trainer(spec: Spec) -> Iterator[Violation]:
    for path, pod in list_pods(spec):
        for index, container in enumerate_entries(pod.get("containers")):
            name = container.get("name")
            if (
                isinstance(name, str)
                and 0 < _compute_edit_distance(name, TRAINER_CONTAINER, _MAX_TYPO_DISTANCE) <= _MAX_TYPO_DISTANCE
            ):
                yield Violation((*path, "containers", index, "name"), quote(name))


def _compute_edit_distance(first: str, second: str, limit: int) -> int:
    """Return the Levenshtein distance of two words, at most `limit` + 1."""
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    previous_row = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        current_row = [row]
        for column, other_letter in enumerate(second, 1):
            replacement_cost = previous_row[column - 1] + (letter != other_letter)
            current_row.append(min(previous_row[column] + 1, current_row[-1] + 1, replacement_cost))
        previous_row = current_row
    return min(previous_row[-1], limit + 1)


_TEMPLATE_PATHS = ("spec.template", "spec.nodeOverrides[].template")

POD_FIELD_RULES = (
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="The API server would reject every pod.",
        message="fields of a template have the names and types of a pod's fields in Kubernetes"
        f" {load_pod_schema().kubernetes}, the newest version that this muster supports; correct the field",
        find_violations=_check_pod_fields,
    ),
    Rule(
        schema_paths=_TEMPLATE_PATHS,
        rationale="A container with another name is a sidecar, so the ranks would run without its settings.",
        message=f"the ranks' container is called {TRAINER_CONTAINER}; correct the name, or give a sidecar a less "
        "similar name",
        find_violations=_check_misspelt_trainer,
    ),
)

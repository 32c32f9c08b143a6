"""Validate a document: return a job, or raise an error with all problems at once."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pydantic import ValidationError

from muster.api import names
from muster.api.document import JSON, Document, FieldPath, format_path, quote
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.schema import find_schema
from muster.api.size_limits import find_deep_path, find_size_problem
from muster.api.spec.job import Job, Metadata, Spec
from muster.api.validation.all_rules import RULES
from muster.api.validation.lengths import truncate_lists
from muster.api.validation.messages import (
    IMPORT_HINT,
    IMPORTED_KINDS,
    build_message,
    build_unknown_field_message,
    describe_value,
)
from muster.api.validation.rule import Rule

MAX_SPEC_BYTES = 256 * 1024
"""Maximum size of the spec as JSON. Every node's plan contains the spec, and etcd limits spec and status to 1.5 MiB."""

MAX_PROBLEMS = 20
"""Maximum number of problems in one error, because building a message takes longer than finding a problem."""

_TOP_LEVEL_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
PLACEHOLDERS: Mapping[str, JSON] = {"launcher": {"perNode": {}}, "command": ["placeholder"]}
"""Values for required fields that are invalid, or that a template leaves to the job: muster can check the others."""

_FIELDS_WITH_ENTRIES = ("env", "metrics", "inputs", "hyperparameters", "nodeOverrides")
"""Fields whose valid entries muster checks even if other entries are invalid."""

_SERVER_FIELDS = (
    ("uid", str, "text"),
    ("generation", int, "a whole number"),
    ("creationTimestamp", str, "text"),
)

PathProblem = tuple[FieldPath, str | Callable[[], str]]
"""A path and its message, or a function that builds the message if the error includes it."""


def validate(document: Document, rules: Sequence[Rule] = RULES) -> Job:
    """Return the document's job. Raises `InvalidResource` with the first problems, in the file's order.

    `rules` are RULES_AFTER_START for a job that has started, because an older muster may have accepted it.

    This function ignores `status`, so a resource from the cluster gives the same job as its file.
    """
    value = document.value
    if not isinstance(value, dict):
        raise _build_error(
            document, [((), f"found {describe_value(value)}; a resource is expected: apiVersion, kind, metadata, spec")]
        )
    fields_to_validate = _select_fields(value)
    size_problem = find_size_problem(fields_to_validate)
    if size_problem is not None:
        raise _build_error(document, [(find_deep_path(fields_to_validate), f"{size_problem}; move the data to a file")])
    kind_problems = _check_kind(value)
    if kind_problems:
        raise _build_error(document, kind_problems)
    problems = [*_find_unknown_top_level_fields(value), *_find_metadata_problems(value.get("metadata"))]
    fields = _drop_nulls(value.get("spec"), ("spec",))
    spec, spec_problems = _read_spec(fields, rules)
    problems += spec_problems
    if problems or spec is None:
        raise _build_error(document, problems)
    return Job(metadata=_read_metadata(value.get("metadata")), spec=spec)


def is_job(document: Document) -> bool:
    """Whether the document has muster's kind and API group, even if it is invalid."""
    value = document.value
    return isinstance(value, dict) and (value.get("kind") == names.KIND or _parse_api_group(value) == names.GROUP)


def _select_fields(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the fields of the resource without status and managedFields, which muster does not validate."""
    fields_to_validate = {key: item for key, item in value.items() if key != "status"}
    metadata = fields_to_validate.get("metadata")
    if isinstance(metadata, dict):
        fields_to_validate["metadata"] = {key: item for key, item in metadata.items() if key != "managedFields"}
    return fields_to_validate


def _parse_api_group(value: Mapping[str, JSON]) -> str:
    return str(value.get("apiVersion")).partition("/")[0]


def _check_kind(value: Mapping[str, JSON]) -> list[PathProblem]:
    """Return the problems of apiVersion and kind. If there are any, muster checks no other field."""
    kind, version = value.get("kind"), value.get("apiVersion")
    expected = f"apiVersion: {names.API_VERSION} and kind: {names.KIND} are expected"
    if kind is None and version is None:
        return [((), f"apiVersion and kind are missing; {expected}")]
    if kind != names.KIND and _parse_api_group(value) != names.GROUP:
        finding = f"found {_describe_name(kind)} of {_describe_name(version)}, which is another kind of resource"
        return [(("kind",), f"{finding}; {IMPORT_HINT if kind in IMPORTED_KINDS else expected}")]
    problems: list[PathProblem] = []
    if version != names.API_VERSION:
        problems.append((("apiVersion",), f"found {describe_value(version)}; {names.API_VERSION} is expected"))
    if kind != names.KIND:
        problems.append((("kind",), f"found {describe_value(kind)}; {names.KIND} is expected"))
    return problems


def _describe_name(value: JSON) -> str:
    return quote(value) if isinstance(value, str) else describe_value(value)


def _find_unknown_top_level_fields(value: Mapping[str, JSON]) -> list[PathProblem]:
    return [
        ((key,), partial(build_unknown_field_message, key, _TOP_LEVEL_FIELDS))
        for key in value
        if key not in _TOP_LEVEL_FIELDS
    ]


def _find_metadata_problems(metadata: JSON) -> list[PathProblem]:
    if metadata is None:
        return [(("metadata", "name"), f"missing, and required: {names.NAME_MESSAGE}")]
    if not isinstance(metadata, dict):
        return [
            (
                ("metadata",),
                f"found {describe_value(metadata)}; fields are expected: name, namespace, labels, annotations",
            )
        ]
    problems: list[PathProblem] = [
        (("metadata", key), partial(build_unknown_field_message, key, names.METADATA_FIELDS))
        for key in metadata
        if key not in names.METADATA_FIELDS
    ]
    name = metadata.get("name")
    if name is None:
        problems.append((("metadata", "name"), f"missing, and required: {names.NAME_MESSAGE}"))
    elif not _matches(name, names.NAME_PATTERN, names.MAX_NAME_CHARS):
        problems.append((("metadata", "name"), f"found {describe_value(name)}; {names.NAME_MESSAGE}"))
    namespace = metadata.get("namespace")
    if namespace is not None and not _matches(namespace, names.NAMESPACE_PATTERN, names.MAX_NAMESPACE_CHARS):
        problems.append((("metadata", "namespace"), f"found {describe_value(namespace)}; a DNS label is expected"))
    for key, value_type, expected in _SERVER_FIELDS:
        if metadata.get(key) is not None and type(metadata[key]) is not value_type:
            problems.append(
                (("metadata", key), f"found {describe_value(metadata[key])}; {expected} is expected, or nothing")
            )
    return problems


def _read_metadata(metadata: JSON) -> Metadata:
    current = metadata if isinstance(metadata, dict) else {}
    return Metadata.model_validate({key: item for key, item in current.items() if item is not None})


def _matches(value: JSON, pattern: str, max_chars: int) -> bool:
    return isinstance(value, str) and len(value) <= max_chars and re.fullmatch(pattern, value) is not None


def _drop_nulls(value: JSON, path: FieldPath) -> JSON:
    """Drop fields that are null, as the API server does, so that an empty `env:` counts as missing.

    Keep null in fields without a schema, because a hyperparameter that is null is a mistake.
    """
    if isinstance(value, list):
        return [_drop_nulls(item, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fields = {key: _drop_nulls(item, (*path, key)) for key, item in value.items()}
    return {key: item for key, item in fields.items() if item is not None or find_schema((*path, key)) is None}


def _read_spec(value: JSON, rules: Sequence[Rule]) -> tuple[Spec | None, list[PathProblem]]:
    if value is None:
        return None, [(("spec",), "missing, and required: the job's command, code, data and settings")]
    if not isinstance(value, dict):
        return None, [(("spec",), f"found {describe_value(value)}; fields are expected: nodes, launcher, command, ...")]
    size = len(json.dumps(value).encode())
    if size > MAX_SPEC_BYTES:
        return None, [(("spec",), f"found {size} bytes; at most {MAX_SPEC_BYTES} are allowed: move the data to a file")]
    truncated_value, length_problems = truncate_lists(value)
    spec, problems = _parse_spec(truncated_value)
    if spec is not None and not length_problems:
        return spec, _find_violations(spec, rules)
    problems = [*length_problems, *problems]
    # Check the rules on the spec without its invalid fields.
    valid_fields, positions = _remove_invalid(truncated_value, [path for path, _ in problems])
    spec_without_invalid, _ = _parse_spec(valid_fields)
    removed_fields = {path[1] for path, _ in problems} - positions.keys()
    violations = [] if spec_without_invalid is None else _find_violations(spec_without_invalid, rules)
    return None, problems + [
        (_restore_path(path, positions), text) for path, text in violations if path[1] not in removed_fields
    ]


def _remove_invalid(
    value: dict[str, JSON], invalid_paths: Iterable[FieldPath]
) -> tuple[dict[str, JSON], dict[str, list[int]]]:
    """Return the spec without invalid fields and entries, and the original positions of the other entries."""
    fields = {
        str(path[1])
        for path in invalid_paths
        if len(path) == len(("spec", "field")) or path[1] not in _FIELDS_WITH_ENTRIES
    }
    entries = {path[1:3] for path in invalid_paths}
    valid_fields: dict[str, JSON] = {key: item for key, item in PLACEHOLDERS.items() if key in fields}
    positions: dict[str, list[int]] = {}
    for key, item in value.items():
        if key in fields:
            continue
        if key in _FIELDS_WITH_ENTRIES and isinstance(item, list):
            positions[key] = [index for index in range(len(item)) if (key, index) not in entries]
            valid_fields[key] = [item[index] for index in positions[key]]
        elif key in _FIELDS_WITH_ENTRIES and isinstance(item, dict):
            positions[key] = []
            valid_fields[key] = {name: entry for name, entry in item.items() if (key, name) not in entries}
        else:
            valid_fields[key] = item
    return valid_fields, positions


def _restore_path(path: FieldPath, positions: Mapping[str, list[int]]) -> FieldPath:
    if len(path) > len(("spec", "field")) and isinstance(path[2], int) and path[1] in positions:
        return (*path[:2], positions[str(path[1])][path[2]], *path[3:])
    return path


def _parse_spec(value: dict[str, JSON]) -> tuple[Spec | None, list[PathProblem]]:
    # Validate JSON text, because pydantic's strict mode rejects Python lists for tuples.
    try:
        return Spec.model_validate_json(json.dumps(value), by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    details_by_path: dict[FieldPath, list[int]] = {}
    for index, detail in enumerate(details):
        details_by_path.setdefault(
            ("spec", *_resolve_location(detail["loc"], value, is_missing=detail["type"] == "missing")), []
        ).append(index)
    return None, [
        (path, partial(build_message, path, [details[index] for index in group]))
        for path, group in details_by_path.items()
    ]


def _resolve_location(loc: tuple[str | int, ...], value: JSON, *, is_missing: bool) -> FieldPath:
    """Convert pydantic's location to a path, without the names of a union's members."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        is_last = position == len(loc) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or (is_last and is_missing)):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _find_violations(spec: Spec, rules: Sequence[Rule]) -> list[PathProblem]:
    return [
        (("spec", *violation.path), f"found {violation.finding}; {rule.message}")
        for rule in rules
        for violation in rule.find_violations(spec)
    ]


def _build_error(document: Document, problems: Iterable[PathProblem]) -> InvalidResource:
    sorted_problems = sorted(
        ((document.find_line(path), path, text) for path, text in problems), key=lambda entry: entry[0] or 0
    )
    field_problems = (
        FieldProblem(path=format_path(path), message=text if isinstance(text, str) else text(), line=line)
        for line, path, text in sorted_problems[:MAX_PROBLEMS]
    )
    return InvalidResource(tuple(field_problems), document.source, max(0, len(sorted_problems) - MAX_PROBLEMS))

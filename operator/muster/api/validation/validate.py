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
from muster.api.validation.messages import COMING_FROM_MPI_OPERATOR, build_message, describe_value, unknown_field
from muster.api.validation.rule import Rule

MAX_SPEC_BYTES = 256 * 1024
"""The limit of the spec as JSON: every node's plan contains it, and it shares etcd's 1.5 MiB with the status."""

MAX_PROBLEMS = 20
"""Maximum number of problems in one error: building more messages takes longer than finding the problems."""

_TOP_LEVEL_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_PLACEHOLDERS: Mapping[str, JSON] = {"launcher": {"perNode": {}}, "command": ["placeholder"]}
"""Values for invalid required fields, so that muster can check the rules about the other fields."""

_FIELDS_WITH_ENTRIES = ("env", "metrics", "inputs", "hyperparameters", "nodeOverrides")
"""Fields with independent entries: muster checks the valid entries even if others are invalid."""

_SERVER_FIELDS = (
    ("uid", str, "text"),
    ("generation", int, "a whole number"),
    ("creationTimestamp", str, "text"),
)

Finding = tuple[FieldPath, str | Callable[[], str]]
"""A path and its message; a function builds the message if the error includes it."""


def validate(document: Document, rules: Sequence[Rule] = RULES) -> Job:
    """Return the job that a document describes. Raises `InvalidResource` with the first problems, in the file's order.

    `rules` are LASTING_RULES for a job that has started, because an older muster may have accepted it.

    `status` is ignored, so resources from the cluster and from files give the same job.
    """
    value = document.value
    if not isinstance(value, dict):
        raise _build_error(
            document, [((), f"found {describe_value(value)}; a resource is expected: apiVersion, kind, metadata, spec")]
        )
    parts = _read_parts(value)
    extent = find_size_problem(parts)
    if extent is not None:
        raise _build_error(document, [(find_deep_path(parts), f"{extent}; no job needs that: put data in a file")])
    foreign = _find_foreign_kind(value)
    if foreign:
        raise _build_error(document, foreign)
    findings = [*_find_unknown_top_level(value), *_find_metadata_problems(value.get("metadata"))]
    fields = _without_nulls(value.get("spec"), ("spec",))
    spec, spec_findings = _read_spec(fields, rules)
    findings += spec_findings
    if findings or spec is None:
        raise _build_error(document, findings)
    return Job(metadata=_read_metadata(value.get("metadata")), spec=spec)


def is_job(document: Document) -> bool:
    """Whether the document has muster's kind and API group, even if it is invalid."""
    value = document.value
    return isinstance(value, dict) and (value.get("kind") == names.KIND or _api_group(value) == names.GROUP)


def _read_parts(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the parts of the resource to validate, without status and managedFields."""
    parts = {key: item for key, item in value.items() if key != "status"}
    metadata = parts.get("metadata")
    if isinstance(metadata, dict):
        parts["metadata"] = {key: item for key, item in metadata.items() if key != "managedFields"}
    return parts


def _api_group(value: Mapping[str, JSON]) -> str:
    return str(value.get("apiVersion")).partition("/")[0]


def _find_foreign_kind(value: Mapping[str, JSON]) -> list[Finding]:
    """Return the problems of apiVersion and kind; with any of them, muster checks no other field."""
    kind, version = value.get("kind"), value.get("apiVersion")
    expected = f"apiVersion: {names.API_VERSION} and kind: {names.KIND} are expected"
    if kind is None and version is None:
        return [((), f"apiVersion and kind are missing; {expected}")]
    if kind != names.KIND and _api_group(value) != names.GROUP:
        named = f"found {_describe_name(kind)} of {_describe_name(version)}, which is another kind of resource"
        return [(("kind",), f"{named}; {COMING_FROM_MPI_OPERATOR if kind == 'MPIJob' else expected}")]
    findings: list[Finding] = []
    if version != names.API_VERSION:
        findings.append((("apiVersion",), f"found {describe_value(version)}; {names.API_VERSION} is expected"))
    if kind != names.KIND:
        findings.append((("kind",), f"found {describe_value(kind)}; {names.KIND} is expected"))
    return findings


def _describe_name(value: JSON) -> str:
    return quote(value) if isinstance(value, str) else describe_value(value)


def _find_unknown_top_level(value: Mapping[str, JSON]) -> list[Finding]:
    return [((key,), partial(unknown_field, key, _TOP_LEVEL_FIELDS)) for key in value if key not in _TOP_LEVEL_FIELDS]


def _find_metadata_problems(metadata: JSON) -> list[Finding]:
    if metadata is None:
        return [(("metadata", "name"), f"missing, and required: {names.NAME_MESSAGE}")]
    if not isinstance(metadata, dict):
        return [
            (
                ("metadata",),
                f"found {describe_value(metadata)}; fields are expected: name, namespace, labels, annotations",
            )
        ]
    findings: list[Finding] = [
        (("metadata", key), partial(unknown_field, key, names.METADATA_FIELDS))
        for key in metadata
        if key not in names.METADATA_FIELDS
    ]
    name = metadata.get("name")
    if name is None:
        findings.append((("metadata", "name"), f"missing, and required: {names.NAME_MESSAGE}"))
    elif not _matches(name, names.NAME_PATTERN, names.MAX_NAME_CHARS):
        findings.append((("metadata", "name"), f"found {describe_value(name)}; {names.NAME_MESSAGE}"))
    namespace = metadata.get("namespace")
    if namespace is not None and not _matches(namespace, names.NAMESPACE_PATTERN, names.MAX_NAMESPACE_CHARS):
        findings.append((("metadata", "namespace"), f"found {describe_value(namespace)}; a DNS label is expected"))
    for key, kind, expected in _SERVER_FIELDS:
        if metadata.get(key) is not None and type(metadata[key]) is not kind:
            findings.append(
                (("metadata", key), f"found {describe_value(metadata[key])}; {expected} is expected, or nothing")
            )
    return findings


def _read_metadata(metadata: JSON) -> Metadata:
    current = metadata if isinstance(metadata, dict) else {}
    return Metadata.model_validate({key: item for key, item in current.items() if item is not None})


def _matches(value: JSON, pattern: str, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value) is not None


def _without_nulls(value: JSON, path: FieldPath) -> JSON:
    """Drop fields that are null, as the API server does: an empty `env:` counts as absent.

    Keep null in fields without a schema, because a hyperparameter without a value is a mistake.
    """
    if isinstance(value, list):
        return [_without_nulls(item, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    by_key = {key: _without_nulls(item, (*path, key)) for key, item in value.items()}
    return {key: item for key, item in by_key.items() if item is not None or find_schema((*path, key)) is None}


def _read_spec(value: JSON, rules: Sequence[Rule]) -> tuple[Spec | None, list[Finding]]:
    if value is None:
        return None, [(("spec",), "missing, and required: what the job is and how it runs")]
    if not isinstance(value, dict):
        return None, [(("spec",), f"found {describe_value(value)}; fields are expected: nodes, launcher, command, ...")]
    size = len(json.dumps(value).encode())
    if size > MAX_SPEC_BYTES:
        return None, [(("spec",), f"found {size} bytes; at most {MAX_SPEC_BYTES} are allowed: put data in a file")]
    within, too_long = truncate_lists(value)
    spec, findings = _parse_spec(within)
    if spec is not None and not too_long:
        return spec, _find_violations(spec, rules)
    findings = [*too_long, *findings]
    # check the rules on the spec without its invalid fields
    valid, positions = _remove_invalid(within, [path for path, _ in findings])
    spec_without_invalid, _ = _parse_spec(valid)
    removed = {path[1] for path, _ in findings} - positions.keys()
    broken = [] if spec_without_invalid is None else _find_violations(spec_without_invalid, rules)
    return None, findings + [(_original_path(path, positions), text) for path, text in broken if path[1] not in removed]


def _remove_invalid(value: dict[str, JSON], wrong: Iterable[FieldPath]) -> tuple[dict[str, JSON], dict[str, list[int]]]:
    """Return the spec without invalid fields and entries, and the original positions of the other entries."""
    fields = {
        str(path[1]) for path in wrong if len(path) == len(("spec", "field")) or path[1] not in _FIELDS_WITH_ENTRIES
    }
    entries = {path[1:3] for path in wrong}
    valid: dict[str, JSON] = {key: item for key, item in _PLACEHOLDERS.items() if key in fields}
    positions: dict[str, list[int]] = {}
    for key, item in value.items():
        if key in fields:
            continue
        if key in _FIELDS_WITH_ENTRIES and isinstance(item, list):
            positions[key] = [index for index in range(len(item)) if (key, index) not in entries]
            valid[key] = [item[index] for index in positions[key]]
        elif key in _FIELDS_WITH_ENTRIES and isinstance(item, dict):
            positions[key] = []
            valid[key] = {name: entry for name, entry in item.items() if (key, name) not in entries}
        else:
            valid[key] = item
    return valid, positions


def _original_path(path: FieldPath, positions: Mapping[str, list[int]]) -> FieldPath:
    if len(path) > len(("spec", "field")) and isinstance(path[2], int) and path[1] in positions:
        return (*path[:2], positions[str(path[1])][path[2]], *path[3:])
    return path


def _parse_spec(value: dict[str, JSON]) -> tuple[Spec | None, list[Finding]]:
    # validate JSON text: strict mode refuses Python's lists for tuples
    try:
        return Spec.model_validate_json(json.dumps(value), by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    details_at: dict[FieldPath, list[int]] = {}
    for index, detail in enumerate(details):
        details_at.setdefault(
            ("spec", *_resolve_location(detail["loc"], value, missing=detail["type"] == "missing")), []
        ).append(index)
    return None, [
        (path, partial(build_message, path, [details[index] for index in group])) for path, group in details_at.items()
    ]


def _resolve_location(loc: tuple[str | int, ...], value: JSON, *, missing: bool) -> FieldPath:
    """Convert pydantic's location to a path, without the names of a union's members."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or (last and missing)):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        path.append(part)
    return tuple(path)


def _find_violations(spec: Spec, rules: Sequence[Rule]) -> list[Finding]:
    return [
        (("spec", *violation.path), f"found {violation.finding}; {rule.message}")
        for rule in rules
        for violation in rule.find_violations(spec)
    ]


def _build_error(document: Document, findings: Iterable[Finding]) -> InvalidResource:
    placed = sorted(((document.line(path), path, text) for path, text in findings), key=lambda entry: entry[0] or 0)
    problems = (
        FieldProblem(path=format_path(path), message=text if isinstance(text, str) else text(), line=line)
        for line, path, text in placed[:MAX_PROBLEMS]
    )
    return InvalidResource(tuple(problems), document.source, max(0, len(placed) - MAX_PROBLEMS))

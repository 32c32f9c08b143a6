"""Validate a document: return a job, or raise an error with all problems at once."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pydantic import ValidationError

from muster.api import names
from muster.api.document import JSON, Document, Path, quoted, shown
from muster.api.extent import deep_path, extent_objection
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.schema import lookup
from muster.api.spec.job import Job, Metadata, Spec
from muster.api.validation.all_rules import RULES
from muster.api.validation.lengths import cut
from muster.api.validation.rule import Rule
from muster.api.validation.sentences import COMING_FROM_MPI_OPERATOR, describe_value, sentence, unknown_field

MAX_SPEC_BYTES = 256 * 1024
"""The limit of the spec as JSON: every node's plan contains it, and it shares etcd's 1.5 MiB with the status."""

MAX_PROBLEMS = 20
"""The most problems that one error names. Writing messages for more takes longer than finding them."""

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_PLACEHOLDERS: Mapping[str, JSON] = {"launcher": {"perNode": {}}, "command": ["placeholder"]}
"""Replace a required field that is wrong, so that the rules about the other fields can be checked."""

_ENTRIES = ("env", "metrics", "inputs", "hyperparameters", "nodeOverrides")
"""Fields with independent entries: if one is wrong, the others are still checked."""

_SET_BY_THE_SERVER = (
    ("uid", str, "text"),
    ("generation", int, "a whole number"),
    ("creationTimestamp", str, "text"),
)

Finding = tuple[Path, str | Callable[[], str]]
"""A path and its problem: long messages are built only for the problems that the error names."""


def validate(document: Document, rules: Sequence[Rule] = RULES) -> Job:
    """Return the job that a document describes. Raises `InvalidResource` with the first problems, in the file's order.

    `rules` are LASTING_RULES for a job that has started: it was accepted under the rules of that time.

    `status` is ignored: a resource from the cluster counts as much as one from a file.
    """
    value = document.value
    if not isinstance(value, dict):
        raise _invalid(
            document, [((), f"found {describe_value(value)}; a resource is expected: apiVersion, kind, metadata, spec")]
        )
    parts = _read_parts(value)
    extent = extent_objection(parts)
    if extent is not None:
        raise _invalid(document, [(deep_path(parts), f"{extent}; no job needs that: put data in a file")])
    foreign = _foreign(value)
    if foreign:
        raise _invalid(document, foreign)
    findings = [*_unknown_at_top(value), *_metadata_findings(value.get("metadata"))]
    fields = _without_nulls(value.get("spec"), ("spec",))
    spec, spec_findings = _spec(fields, rules)
    findings += spec_findings
    if findings or spec is None:
        raise _invalid(document, findings)
    return Job(metadata=_metadata(value.get("metadata")), spec=spec)


def is_job(document: Document) -> bool:
    """Whether the document claims to be one of muster's resources, valid or not."""
    value = document.value
    return isinstance(value, dict) and (value.get("kind") == names.KIND or _group(value) == names.GROUP)


def _read_parts(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """The parts of the resource to read: without status and managedFields."""
    parts = {key: item for key, item in value.items() if key != "status"}
    metadata = parts.get("metadata")
    if isinstance(metadata, dict):
        parts["metadata"] = {key: item for key, item in metadata.items() if key != "managedFields"}
    return parts


def _group(value: Mapping[str, JSON]) -> str:
    return str(value.get("apiVersion")).partition("/")[0]


def _foreign(value: Mapping[str, JSON]) -> list[Finding]:
    """Show that this is not muster's resource; no other problem matters then."""
    kind, version = value.get("kind"), value.get("apiVersion")
    expected = f"apiVersion: {names.API_VERSION} and kind: {names.KIND} are expected"
    if kind is None and version is None:
        return [((), f"apiVersion and kind are missing; {expected}")]
    if kind != names.KIND and _group(value) != names.GROUP:
        named = f"found {_named(kind)} of {_named(version)}, which is another kind of resource"
        return [(("kind",), f"{named}; {COMING_FROM_MPI_OPERATOR if kind == 'MPIJob' else expected}")]
    wrong: list[Finding] = []
    if version != names.API_VERSION:
        wrong.append((("apiVersion",), f"found {describe_value(version)}; {names.API_VERSION} is expected"))
    if kind != names.KIND:
        wrong.append((("kind",), f"found {describe_value(kind)}; {names.KIND} is expected"))
    return wrong


def _named(value: JSON) -> str:
    return quoted(value) if isinstance(value, str) else describe_value(value)


def _unknown_at_top(value: Mapping[str, JSON]) -> list[Finding]:
    return [((key,), partial(unknown_field, key, _TOP)) for key in value if key not in _TOP]


def _metadata_findings(metadata: JSON) -> list[Finding]:
    if metadata is None:
        return [(("metadata", "name"), f"missing, and required: {names.NAME_SENTENCE}")]
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
        findings.append((("metadata", "name"), f"missing, and required: {names.NAME_SENTENCE}"))
    elif not _matches(name, names.NAME_PATTERN, names.MAX_NAME_CHARS):
        findings.append((("metadata", "name"), f"found {describe_value(name)}; {names.NAME_SENTENCE}"))
    namespace = metadata.get("namespace")
    if namespace is not None and not _matches(namespace, names.NAMESPACE_PATTERN, names.MAX_NAMESPACE_CHARS):
        findings.append((("metadata", "namespace"), f"found {describe_value(namespace)}; a DNS label is expected"))
    for key, kind, expected in _SET_BY_THE_SERVER:
        if metadata.get(key) is not None and type(metadata[key]) is not kind:
            findings.append(
                (("metadata", key), f"found {describe_value(metadata[key])}; {expected} is expected, or nothing")
            )
    return findings


def _metadata(metadata: JSON) -> Metadata:
    current = metadata if isinstance(metadata, dict) else {}
    return Metadata.model_validate({key: item for key, item in current.items() if item is not None})


def _matches(value: JSON, pattern: str, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and re.fullmatch(pattern, value) is not None


def _without_nulls(value: JSON, path: Path) -> JSON:
    """Drop fields that are null, as the API server does: an empty `env:` counts as absent.

    Keep null where there is no schema: a hyperparameter without a value is a mistake.
    """
    if isinstance(value, list):
        return [_without_nulls(item, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    by_key = {key: _without_nulls(item, (*path, key)) for key, item in value.items()}
    return {key: item for key, item in by_key.items() if item is not None or lookup((*path, key)) is None}


def _spec(value: JSON, rules: Sequence[Rule]) -> tuple[Spec | None, list[Finding]]:
    if value is None:
        return None, [(("spec",), "missing, and required: what the job is and how it runs")]
    if not isinstance(value, dict):
        return None, [(("spec",), f"found {describe_value(value)}; fields are expected: nodes, launcher, command, ...")]
    size = len(json.dumps(value).encode())
    if size > MAX_SPEC_BYTES:
        return None, [(("spec",), f"found {size} bytes; at most {MAX_SPEC_BYTES} are allowed: put data in a file")]
    within, too_long = cut(value)
    spec, findings = _typed(within)
    if spec is not None and not too_long:
        return spec, _broken(spec, rules)
    findings = [*too_long, *findings]
    # check the rules on the spec without its invalid fields
    left, kept = _left(within, [path for path, _ in findings])
    rest, _ = _typed(left)
    removed = {path[1] for path, _ in findings} - kept.keys()
    broken = [] if rest is None else _broken(rest, rules)
    return None, findings + [(_original(path, kept), text) for path, text in broken if path[1] not in removed]


def _left(value: dict[str, JSON], wrong: Iterable[Path]) -> tuple[dict[str, JSON], dict[str, list[int]]]:
    """The spec without its wrong fields and entries, and the original positions of the remaining entries."""
    fields = {str(path[1]) for path in wrong if len(path) == len(("spec", "field")) or path[1] not in _ENTRIES}
    entries = {path[1:3] for path in wrong}
    left: dict[str, JSON] = {key: item for key, item in _PLACEHOLDERS.items() if key in fields}
    kept: dict[str, list[int]] = {}
    for key, item in value.items():
        if key in fields:
            continue
        if key in _ENTRIES and isinstance(item, list):
            kept[key] = [index for index in range(len(item)) if (key, index) not in entries]
            left[key] = [item[index] for index in kept[key]]
        elif key in _ENTRIES and isinstance(item, dict):
            kept[key] = []
            left[key] = {name: entry for name, entry in item.items() if (key, name) not in entries}
        else:
            left[key] = item
    return left, kept


def _original(path: Path, kept: Mapping[str, list[int]]) -> Path:
    if len(path) > len(("spec", "field")) and isinstance(path[2], int) and path[1] in kept:
        return (*path[:2], kept[str(path[1])][path[2]], *path[3:])
    return path


def _typed(value: dict[str, JSON]) -> tuple[Spec | None, list[Finding]]:
    # validate JSON text: strict mode refuses Python's lists for tuples
    try:
        return Spec.model_validate_json(json.dumps(value), by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    at: dict[Path, list[int]] = {}
    for index, detail in enumerate(details):
        at.setdefault(("spec", *_real(detail["loc"], value, missing=detail["type"] == "missing")), []).append(index)
    return None, [(path, partial(sentence, path, [details[index] for index in group])) for path, group in at.items()]


def _real(loc: tuple[str | int, ...], value: JSON, *, missing: bool) -> Path:
    """pydantic's location without the names of a union's members."""
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


def _broken(spec: Spec, rules: Sequence[Rule]) -> list[Finding]:
    return [
        (("spec", *breach.path), f"found {breach.finding}; {rule.sentence}")
        for rule in rules
        for breach in rule.breaches(spec)
    ]


def _invalid(document: Document, findings: Iterable[Finding]) -> InvalidResource:
    placed = sorted(((document.line(path), path, text) for path, text in findings), key=lambda one: one[0] or 0)
    problems = (
        FieldProblem(path=shown(path), message=text if isinstance(text, str) else text(), line=line)
        for line, path, text in placed[:MAX_PROBLEMS]
    )
    return InvalidResource(tuple(problems), document.source, max(0, len(placed) - MAX_PROBLEMS))

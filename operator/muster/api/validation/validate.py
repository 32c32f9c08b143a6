"""A document as a valid job, or all that is wrong with it at once."""

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
"""Of the spec as JSON: it travels whole in the plan to every node, and shares etcd's 1.5 MiB with the status."""

MAX_PROBLEMS = 20
"""The problems that one answer names. To word the others takes longer than to find them."""

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_PLACEHOLDERS: Mapping[str, JSON] = {"launcher": {"perNode": {}}, "command": ["placeholder"]}
"""Stand in for a required field that is wrong, so that the rules about the others can still be asked."""

_ENTRIES = ("env", "metrics", "inputs", "hyperparameters", "nodeOverrides")
"""Fields whose entries stand for themselves: a wrong one leaves the others to be judged."""

_GIVEN_BY_THE_SERVER = (
    ("uid", str, "text"),
    ("generation", int, "a whole number"),
    ("creationTimestamp", str, "text"),
)

Finding = tuple[Path, str | Callable[[], str]]
"""Where something is wrong, and what: long words are made only for the problems that the answer names."""


def validate(document: Document, rules: Sequence[Rule] = RULES) -> Job:
    """The job that a document describes. Raises `InvalidResource` with the first problems, in the file's order.

    `rules` are LASTING_RULES for a job that was started: it was accepted by the others of its time.

    `status` is not read: a resource that came from the cluster is as good as one that was written by hand.
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
    written = _without_nulls(value.get("spec"), ("spec",))
    spec, spec_findings = _spec(written, rules)
    findings += spec_findings
    if findings or spec is None:
        raise _invalid(document, findings)
    return Job(metadata=_metadata(value.get("metadata")), spec=spec)


def is_job(document: Document) -> bool:
    """Whether the document says that it is one of muster's resources, valid or not."""
    value = document.value
    return isinstance(value, dict) and (value.get("kind") == names.KIND or _group(value) == names.GROUP)


def _read_parts(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """What of the resource is looked at: neither its status, nor the API server's notes on who wrote which field."""
    parts = {key: item for key, item in value.items() if key != "status"}
    metadata = parts.get("metadata")
    if isinstance(metadata, dict):
        parts["metadata"] = {key: item for key, item in metadata.items() if key != "managedFields"}
    return parts


def _group(value: Mapping[str, JSON]) -> str:
    return str(value.get("apiVersion")).partition("/")[0]


def _foreign(value: Mapping[str, JSON]) -> list[Finding]:
    """What shows that this is no resource of muster's: nothing else is worth saying then."""
    kind, version = value.get("kind"), value.get("apiVersion")
    expected = f"apiVersion: {names.API_VERSION} and kind: {names.KIND} are expected"
    if kind is None and version is None:
        return [((), f"neither apiVersion nor kind is given; {expected}")]
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
    for key, kind, expected in _GIVEN_BY_THE_SERVER:
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
    """Drop fields that are null, as the API server does: `env:` with nothing after it is as good as none.

    What has no schema is kept: a hyperparameter with nothing after it is a value that was forgotten.
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
    # the rules are asked of what is left without all that is wrong
    left, kept = _left(within, [path for path, _ in findings])
    rest, _ = _typed(left)
    removed = {path[1] for path, _ in findings} - kept.keys()
    broken = [] if rest is None else _broken(rest, rules)
    return None, findings + [(_original(path, kept), text) for path, text in broken if path[1] not in removed]


def _left(value: dict[str, JSON], wrong: Iterable[Path]) -> tuple[dict[str, JSON], dict[str, list[int]]]:
    """The spec without its wrong fields and entries, and the original positions of the entries that were kept."""
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
    # from JSON, where a list is a tuple's only form; strict refuses Python's lists
    try:
        return Spec.model_validate_json(json.dumps(value), by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    at: dict[Path, list[int]] = {}
    for index, detail in enumerate(details):
        at.setdefault(("spec", *_real(detail["loc"], value, missing=detail["type"] == "missing")), []).append(index)
    return None, [(path, partial(sentence, path, [details[index] for index in group])) for path, group in at.items()]


def _real(loc: tuple[str | int, ...], value: JSON, *, missing: bool) -> Path:
    """pydantic's location without its names for a union's members."""
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

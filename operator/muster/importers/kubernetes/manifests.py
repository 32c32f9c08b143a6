"""Convert the documents of manifests to jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.api.document import JSON, Document, quote
from muster.api.json_fields import read_mapping, read_string
from muster.api.size_limits import find_size_problem
from muster.api.validation.messages import describe_value
from muster.api.yaml.serialise import to_yaml
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Reading
from muster.importers.kubernetes.kinds.registry import (
    IMPORTERS,
    RUNTIME_GROUP,
    RUNTIME_PLURALS,
    TRAINING_GROUPS,
    list_kinds,
)
from muster.importers.kubernetes.report import Location

_OWN_KINDS = frozenset(kind for _, kind in IMPORTERS) - {"Job"}
"""Kinds whose names tell that they are trainings, also with a mistyped group."""

Runtimes = Mapping[tuple[str, str], Document]
"""Training runtimes by kind and name."""


@dataclass
class ManifestResult:
    """The YAML documents of the imported jobs, with notices and problems. `resources` are the jobs alone."""

    documents: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    resources: list[dict[str, JSON]] = field(default_factory=list)
    job_names: dict[tuple[str, str], str] = field(default_factory=dict)
    """The manifest of each job, by the job's namespace and name."""


def import_manifests(documents: Sequence[Document], runtime_documents: Sequence[Document] = ()) -> ManifestResult:
    """Convert all training jobs among the documents."""
    result = ManifestResult()
    items = [item for document in documents for item in _list_items(document)]
    runtimes = find_runtimes([*runtime_documents, *items], result.problems)
    for document in items:
        _import_document(document, runtimes, result)
    return result


def find_runtimes(documents: Iterable[Document], problems: list[str]) -> Runtimes:
    """Return the training runtimes among the documents. Add a problem for each whose name another one has."""
    runtimes: dict[tuple[str, str], Document] = {}
    for document in documents:
        group, kind = read_kind(document)
        metadata = document.value.get("metadata") if isinstance(document.value, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if group != RUNTIME_GROUP or kind not in RUNTIME_PLURALS or not isinstance(name, str):
            continue
        if (kind, name) in runtimes:
            message = f"another {kind} has the name {quote(name)}; pass only the one of the job's namespace"
            problems.append(Location(document, ("metadata", "name")).describe(message))
        runtimes[kind, name] = document
    return runtimes


def read_kind(document: Document) -> tuple[str, str]:
    """Return the API group, "" for the core group, and the kind."""
    value = document.value if isinstance(document.value, dict) else {}
    group, slash, _ = str(value.get("apiVersion")).partition("/")
    return (group if slash else "", str(value.get("kind")))


def _list_items(document: Document) -> list[Document]:
    """Return the items of a list, as `kubectl get -o yaml` prints it, and of lists in it, or the document itself."""
    value = document.value
    if not isinstance(value, dict) or not str(value.get("kind")).endswith("List"):
        return [document]
    items = value.get("items")
    if not isinstance(items, list):
        return [document]
    taken = (_take_item(document, index, item) for index, item in enumerate(items))
    return [inner for item in taken for inner in _list_items(item)]


def _take_item(document: Document, index: int, item: JSON) -> Document:
    prefix = ("items", index)
    lines = {path[2:]: line for path, line in document.lines.items() if path[:2] == prefix}
    return Document(item, document.source, lines)


def _import_document(document: Document, runtimes: Runtimes, result: ManifestResult) -> None:
    root = Location(document, ())
    value = document.value
    if not isinstance(value, dict):
        result.problems.append(root.describe(f"found {describe_value(value)}; a resource is expected"))
        return
    size_problem = find_size_problem(value)
    if size_problem is not None:
        result.problems.append(root.describe(f"{size_problem}; move the data to a file"))
        return
    group, kind = read_kind(document)
    importer = IMPORTERS.get((group, kind))
    if importer is None:
        _skip(document, group, kind, result)
        return
    version = str(value.get("apiVersion")).partition("/")[2]
    if version not in importer.versions:
        versions = " and ".join(f"{group}/{each}" for each in importer.versions)
        message = f"found {quote(f'{group}/{version}')}; muster imports {kind} of {versions}"
        result.problems.append(root.child("apiVersion").describe(message))
        return
    reading = Reading()
    fields = reading.open(document)
    fields.take("apiVersion")
    fields.take("kind")
    draft = importer.convert(fields, Context(reading, runtimes))
    reading.report_unread()
    if draft is not None and not reading.report.problems:
        draft.check(reading.report)
    result.notices += reading.report.notices
    result.problems += reading.report.problems
    if draft is not None and not reading.report.problems:
        _add_job(draft, document, result)


def _add_job(draft: Draft, document: Document, result: ManifestResult) -> None:
    resource, (_, kind) = draft.build_resource(), read_kind(document)
    name = (read_string(read_mapping(resource["metadata"]).get("namespace")), draft.name)
    other = result.job_names.get(name)
    if other is not None:
        message = f"{other} {draft.name} has the same name, and both would be one job; give one of them another name"
        result.problems.append(Location(document, ("metadata", "name")).describe(message))
    result.job_names[name] = kind
    result.resources.append(resource)
    result.documents += format_job(draft, kind)


def _skip(document: Document, group: str, kind: str, result: ManifestResult) -> None:
    """Skip a resource that is no training, such as a ConfigMap."""
    root = Location(document, ())
    if group == RUNTIME_GROUP and kind in RUNTIME_PLURALS:
        return
    value = document.value if isinstance(document.value, dict) else {}
    if value.get("kind") is None or value.get("apiVersion") is None:
        message = f"apiVersion and kind are expected; muster imports {list_kinds()}"
        result.problems.append(root.describe(message))
    elif group in TRAINING_GROUPS or kind in _OWN_KINDS:
        message = f"found {quote(kind)} of {quote(str(value.get('apiVersion')))}; muster imports {list_kinds()}"
        result.problems.append(root.child("kind").describe(message))
    else:
        result.notices.append(root.describe(f"{kind} is no training job; skipped: apply it yourself"))


def format_job(draft: Draft, kind: str) -> list[str]:
    """Return the YAML of the job and of its other resources."""
    location = draft.metadata.location
    line = location.document.find_line(())
    source = location.document.source if line is None else f"{location.document.source}:{line}"
    comment = f"# Imported from {kind} {draft.name} ({source}).\n"
    return [comment + to_yaml(draft.build_resource()), *(to_yaml(other) for other in draft.others)]

"""The tests' manifests, and changes of their fields."""

import copy
from dataclasses import dataclass
from pathlib import Path

from muster.api.document import JSON, Document
from muster.api.yaml.load import load_documents
from muster.importers.kubernetes.manifests import ManifestResult, import_manifests
from muster_dev.golden_manifests import load_folder, load_runtimes

HERE = Path(__file__).parent
MANIFESTS = load_folder("manifests")
RUNTIMES = load_runtimes()


def load_table(name: str) -> list[dict[str, JSON]]:
    """Return the rows of a table of this folder."""
    (document,) = load_documents((HERE / name).read_text(encoding="utf-8"), name)
    assert isinstance(document.value, list)
    return [row for row in document.value if isinstance(row, dict)]


@dataclass(frozen=True)
class Change:
    """A field of a manifest, as `spec.tasks.0.name`, and its new value; None removes it."""

    path: str
    value: JSON


def change_manifest(name: str, change: Change) -> list[Document]:
    """Return the documents of a manifest whose training job is changed."""
    return [_change(document, change) if _is_training(document) else document for document in MANIFESTS[name]]


def import_changed(name: str, change: Change) -> ManifestResult:
    return import_manifests(change_manifest(name, change), RUNTIMES)


def _is_training(document: Document) -> bool:
    assert isinstance(document.value, dict)
    return document.value["kind"] not in ("Service", "ClusterTrainingRuntime")


def _change(document: Document, change: Change) -> Document:
    value = copy.deepcopy(document.value)
    *parents, last = change.path.split(".") if "/" not in change.path else [change.path]
    parent: JSON = value
    for key in parents:
        parent = _enter(parent, key)
    if isinstance(parent, list):
        parent[int(last) :] = [change.value]
    elif isinstance(parent, dict) and change.value is None:
        del parent[last]
    elif isinstance(parent, dict):
        parent[last] = change.value
    return Document(value, document.source)


def _enter(value: JSON, key: str) -> JSON:
    if isinstance(value, list):
        return value[int(key)]
    assert isinstance(value, dict)
    return value.setdefault(key, {})

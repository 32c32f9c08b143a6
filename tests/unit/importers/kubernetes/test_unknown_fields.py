"""A field that muster doesn't know is always reported, wherever it is in a manifest."""

import copy
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.document import JSON, Document, FieldPath
from muster.importers.kubernetes.manifests import import_manifests
from support.rows import check_rows
from support.searches import choose_example_count
from unit.importers.kubernetes.manifest_files import MANIFESTS, RUNTIMES

RUNTIME_USERS = {
    "torch-distributed": "train_torch",
    "torch-cpu": "train_cpu",
    "deepspeed-distributed": "train_deepspeed",
}
"""The manifest that uses each runtime."""

FREE_MAPS = (
    *("labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests", "data"),
    *("selector", "plugins", "status", "pytorchReplicaSpecs", "mpiReplicaSpecs"),
)
"""Maps whose keys are the user's own, and fields that muster leaves out as a whole, with a notice."""

SKIPPED_KINDS = ("Service", "ClusterTrainingRuntime", "List")


def list_maps(value: JSON, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of all maps that have fixed fields."""
    if isinstance(value, dict):
        if not path or path[-1] not in FREE_MAPS or path[-1] in ("pytorchReplicaSpecs", "mpiReplicaSpecs"):
            yield path
        for key, item in value.items():
            if key not in FREE_MAPS or key in ("pytorchReplicaSpecs", "mpiReplicaSpecs"):
                yield from list_maps(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from list_maps(item, (*path, index))


PLACES = [
    (name, number, path)
    for name, documents in MANIFESTS.items()
    for number, document in enumerate(documents)
    if isinstance(document.value, dict) and document.value["kind"] not in SKIPPED_KINDS
    for path in list_maps(document.value)
]

NAMES = st.from_regex(r"\A[a-z][A-Za-z]{3,20}X\Z")
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def add_field(name: str, number: int, path: FieldPath, field: str, value: JSON) -> list[Document]:
    documents = list(MANIFESTS[name])
    documents[number] = add_to_document(documents[number], path, field, value)
    return documents


def add_to_document(document: Document, path: FieldPath, field: str, value: JSON) -> Document:
    changed = copy.deepcopy(document.value)
    parent: JSON = changed
    for key in path:
        parent = parent[key]  # type: ignore[index]
    assert isinstance(parent, dict)
    parent[field] = value
    return Document(changed, document.source)


@settings(max_examples=choose_example_count(150), deadline=None)
@given(st.sampled_from(PLACES), NAMES, VALUES)
def test_an_unknown_field_is_reported_anywhere(place: tuple[str, int, FieldPath], field: str, value: JSON) -> None:
    result = import_manifests(add_field(*place, field, value), RUNTIMES)
    assert any(field in problem for problem in result.problems), (place, field)
    assert len(result.documents) < 2


def test_each_place_reports_one() -> None:
    def check(place: tuple[str, int, FieldPath]) -> None:
        result = import_manifests(add_field(*place, "unknownFieldX", {"a": 1}), RUNTIMES)
        assert any("unknownFieldX" in problem for problem in result.problems)

    check_rows(PLACES, check)


def test_unknown_fields_of_runtimes_are_reported() -> None:
    for number, runtime in enumerate(RUNTIMES):
        assert isinstance(runtime.value, dict)
        metadata = runtime.value["metadata"]
        assert isinstance(metadata, dict)
        manifest = MANIFESTS[RUNTIME_USERS[str(metadata["name"])]]
        for path in list_maps(runtime.value):
            runtimes = list(RUNTIMES)
            runtimes[number] = add_to_document(runtime, path, "unknownFieldX", 1)
            result = import_manifests(manifest, runtimes)
            assert any("unknownFieldX" in problem for problem in result.problems), path


def list_paths(value: JSON, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of all values."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [])
    for key, item in entries:
        yield from list_paths(item, (*path, key))


VALUE_PLACES = [
    (name, number, path)
    for name, documents in MANIFESTS.items()
    for number, document in enumerate(documents)
    for path in list_paths(document.value)
    if path
]
ODD_VALUES = VALUES | st.sampled_from(
    ["sh", "-c", "torchrun", "mpirun", "$(RANK)", "${X}", "auto", "Indexed", 0, 10**18, 1.5, [{}], {"name": "a"}]
)


@settings(max_examples=choose_example_count(300), deadline=None)
@given(st.sampled_from(VALUE_PLACES), ODD_VALUES)
def test_no_value_is_a_stack_trace(place: tuple[str, int, FieldPath], value: JSON) -> None:
    name, number, path = place
    documents = list(MANIFESTS[name])
    documents[number] = replace_value(documents[number], path, value)
    result = import_manifests(documents, RUNTIMES)
    # An empty list has no job, and what is no training is skipped with a notice.
    assert result.documents or result.problems or name == "list" or "skipped" in str(result.notices)


def replace_value(document: Document, path: FieldPath, value: JSON) -> Document:
    changed = copy.deepcopy(document.value)
    parent: JSON = changed
    for key in path[:-1]:
        parent = parent[key]  # type: ignore[index]
    parent[path[-1]] = value  # type: ignore[index]
    return Document(changed, document.source)

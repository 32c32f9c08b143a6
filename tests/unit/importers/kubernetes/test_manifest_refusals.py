"""Fields that muster can't carry over: the message names the field, what muster found, and what to do."""

import pytest

from muster.api.document import JSON, Document
from muster.importers.kubernetes.manifests import import_manifests
from support.rows import check_rows
from unit.importers.kubernetes.manifest_files import (
    MANIFESTS,
    RUNTIMES,
    Change,
    change_manifest,
    import_changed,
    load_table,
)

ROWS = load_table("refusals.yaml")


def format_field(path: str) -> str:
    """Return `spec.tasks.0.name` as messages write it: `spec.tasks[0].name`."""
    return "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in path.split(".")).removeprefix(".")


def test_the_field_is_named_and_no_job_is_printed() -> None:
    def check(row: dict[str, JSON]) -> None:
        result = import_changed(str(row["base"]), Change(str(row["at"]), row["value"]))
        field = str(row.get("field", format_field(str(row["at"]))))
        matching = [problem for problem in result.problems if str(row["says"]) in problem]
        assert matching, result.problems
        assert any(f": {field}: " in problem or not field for problem in matching), (field, matching)
        assert result.documents == []

    check_rows(ROWS, check)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "found null; a resource is expected"),
        ([], "found an empty list; a resource is expected"),
        ("text", 'found the text "text"; a resource is expected'),
        ({}, "apiVersion and kind are expected"),
        ({"kind": "PyTorchJob"}, "apiVersion and kind are expected"),
        ({"kind": 3, "apiVersion": 4}, None),
        ({"kind": "Job", "apiVersion": "batch/v1"}, "spec.template.spec: missing, and required"),
        ({"kind": "List", "apiVersion": "v1", "items": 5}, None),
        ({"kind": "List", "apiVersion": "v1", "items": [5]}, "found 5; a resource is expected"),
    ],
)
def test_other_values_are_no_stack_trace(value: JSON, message: str | None) -> None:
    result = import_manifests([Document(value)], RUNTIMES)
    assert result.documents == []
    assert message is None or any(message in problem for problem in result.problems)


def test_a_problem_names_the_line() -> None:
    (document,) = MANIFESTS["pytorch_simple"]
    assert isinstance(document.value, dict)
    broken = Document({**document.value, "kind": "TFJob"}, document.source, document.lines)
    assert import_manifests([broken]).problems[0].startswith('pytorch_simple.yaml:2: kind: found "TFJob"')


def test_two_jobs_of_a_name_would_be_one() -> None:
    (manifest,) = MANIFESTS["pytorch_simple"]
    (elsewhere,) = change_manifest("pytorch_simple", Change("metadata.namespace", "other"))

    assert import_manifests([manifest, elsewhere]).problems == []
    (problem,) = import_manifests([manifest, manifest]).problems
    assert "metadata.name: PyTorchJob pytorch-simple has the same name, and both would be one job" in problem


def test_two_runtimes_of_a_name_are_a_question() -> None:
    runtime = RUNTIMES[0]

    (problem,) = import_manifests([], [runtime, runtime]).problems

    assert "pass only the one of the job's namespace" in problem


@pytest.mark.parametrize("version", ["kubeflow/v1", "kubeflow.org", "kubefloworg/v1"])
def test_a_training_of_a_mistyped_group_is_not_skipped(version: str) -> None:
    (problem,) = import_manifests([Document({"apiVersion": version, "kind": "PyTorchJob"}, "a.yaml")]).problems
    assert f'found "PyTorchJob" of "{version}"; muster imports PyTorchJob (kubeflow.org/v1)' in problem


def test_jobs_of_a_list_in_a_list_are_imported() -> None:
    (manifest,) = MANIFESTS["pytorch_simple"]
    inner: dict[str, JSON] = {"apiVersion": "v1", "kind": "List", "items": [manifest.value]}
    result = import_manifests([Document({"apiVersion": "v1", "kind": "List", "items": [inner]}, "a.yaml")])
    assert len(result.resources) == 1


def test_a_text_of_a_tenant_controls_no_terminal_and_forges_no_line() -> None:
    result = import_changed("pytorch_simple", Change("spec.runPolicy.managedBy", "a\x1b[2Jb\nforged" + "x" * 5000))
    assert all(message.isprintable() for message in result.problems)
    assert max(map(len, result.problems)) < 1200

"""The JSON schema for editors accepts what muster accepts, and marks mistakes in single fields."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from muster.api.document import JSON
from muster.api.editor_schema import build_editor_schema, format_editor_schema
from muster.api.status.progress import Progress
from muster.api.status.status import Status
from muster.api.yaml.load import load_documents
from muster.api.yaml.serialise import serialise_status
from muster_dev.paths import ROOT
from support.rows import check_rows

SCHEMA = Draft7Validator(build_editor_schema())
EXAMPLES = sorted(ROOT.glob("training/examples/*/job.yaml")) + sorted(ROOT.glob("tests/unit/pools/*.yaml"))


def make_job(**spec: JSON) -> dict[str, Any]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "vit"},
        "spec": {"launcher": {"direct": {}}, "command": ["train"], **spec},
    }


def find_problems(job: object) -> list[tuple[str, str]]:
    errors = SCHEMA.iter_errors(job)
    return sorted((".".join(map(str, error.path)), str(error.validator)) for error in errors)


def test_the_schema_is_a_json_schema() -> None:
    Draft7Validator.check_schema(build_editor_schema())


def test_no_extension_of_kubernetes_is_left() -> None:
    assert "x-kubernetes-" not in format_editor_schema()
    assert json.loads(format_editor_schema()) == build_editor_schema()


def test_the_examples_have_no_mistakes() -> None:
    def check(path: Path) -> None:
        documents = load_documents(path.read_text("utf-8"), str(path))
        assert [find_problems(document.value) for document in documents] == [[] for _ in documents]

    check_rows(EXAMPLES, check)


@pytest.mark.parametrize("procs", [4, "Auto"])
def test_an_integer_or_a_word(procs: JSON) -> None:
    assert find_problems(make_job(procsPerNode=procs)) == []


def test_a_job_from_a_cluster_has_no_mistakes() -> None:
    status = serialise_status(Status(phase="Running", progress=Progress(step=3, percent=20)))
    job = make_job(template={"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}})
    job["metadata"] |= {"uid": "u", "managedFields": [{}]}
    assert find_problems({**job, "status": status}) == []


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (make_job(nodes=0), ("spec.nodes", "minimum")),
        (make_job(nodes="2"), ("spec.nodes", "type")),
        (make_job(node=2), ("spec", "additionalProperties")),
        (make_job(backend="Slurm"), ("spec.backend", "enum")),
        (make_job(procsPerNode=[]), ("spec.procsPerNode", "type")),
        ({**make_job(), "metadata": {"name": "Vit"}}, ("metadata.name", "pattern")),
        ({**make_job(), "metadata": {"nmae": "vit"}}, ("metadata", "additionalProperties")),
        ({**make_job(), "kind": "PyTorchJob"}, ("kind", "const")),
        ({**make_job(), "specs": {}}, ("", "additionalProperties")),
    ],
)
def test_mistakes_are_marked(job: object, problem: tuple[str, str]) -> None:
    assert find_problems(job) == [problem]

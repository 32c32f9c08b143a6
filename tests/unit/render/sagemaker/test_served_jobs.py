"""A job that went through an API server becomes the same request.

Kubernetes stores an object of unknown fields, such as the model parallel library's parameters, as a map: its keys are
sorted, and a whole float has no decimal point (k8s.io/apimachinery, runtime.RawExtension and unstructured JSON). The
library parses JSON, in which both mean the same.
"""

import json
from pathlib import Path

from muster.api.document import JSON, Document
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.cli.render.training_request import build_request
from muster.render.sagemaker.request.training_request import Fields
from support.rows import check_rows

JOBS = sorted((Path(__file__).parent / "jobs").glob("*.yaml"))


def served(value: JSON) -> JSON:
    """As the API server returns it."""
    if isinstance(value, dict):
        return {name: served(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [served(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def meaning(body: Fields) -> Fields:
    """With JSON texts parsed."""
    value = body.get("HyperParameters")
    assert isinstance(value, dict)
    return {**body, "HyperParameters": {name: read(str(text)) for name, text in value.items()}}


def read(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
    except ValueError:
        return text
    # mp_parameters is JSON of JSON for one framework's estimators
    return read(value) if isinstance(value, str) else value


def test_the_request_means_the_same() -> None:
    def check(path: Path) -> None:
        (document,) = load_documents(path.read_text(), path.name)
        applied = build_request(validate(document), "us-west-2")
        held = build_request(validate(Document(served(document.value))), "us-west-2")
        assert meaning(held.body) == meaning(applied.body)
        assert held.archive == applied.archive

    check_rows(JOBS, check)


def test_keys_and_whole_floats_come_back_otherwise() -> None:
    assert json.dumps(served({"b": 1.0, "a": [0.5]})) == '{"a": [0.5], "b": 1}'

"""Each recorded request of the SageMaker SDK equals the request of the corresponding DistributedTrainingJob."""

import json
from pathlib import Path

from muster.api.document import JSON
from muster.api.validation.validate import validate
from muster.api.yaml.load import decode_documents
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from support.rows import check_rows

HERE = Path(__file__).parent
ROWS = sorted(path.stem for path in (HERE / "golden").glob("*.json") if path.stem != "cases")
PLACEHOLDER = "<the training job's name>"

REFUSED = {"plain_spot_and_warmpool": "SageMaker refuses what the SDK sends: test_sagemaker_rules.py"}


def golden(case: str) -> dict[str, JSON]:
    result: dict[str, JSON] = json.loads((HERE / "golden" / f"{case}.json").read_text())
    return result


def rendered(case: str, training_job: str) -> dict[str, JSON]:
    path = HERE / "jobs" / f"{case}.yaml"
    (document,) = decode_documents(path.read_bytes(), path.name)
    return render_request(
        validate(document), RequestSettings("us-west-2", "111122223333", training_job), load_image_facts()
    ).body


def without_name(value: JSON, name: str) -> JSON:
    if isinstance(value, str):
        return value.replace(name, PLACEHOLDER)
    if isinstance(value, list):
        return [without_name(item, name) for item in value]
    if isinstance(value, dict):
        return {key: without_name(item, name) for key, item in value.items()}
    return value


def test_a_job_becomes_the_request_of_the_sdk() -> None:
    def check(case: str) -> None:
        expected = golden(case)
        name = str(expected["TrainingJobName"])
        ours = "my-job-0123456789-1"
        assert without_name(rendered(case, ours), ours) == without_name(expected, name)

    check_rows([case for case in ROWS if case not in REFUSED], check)


def test_every_request_has_its_job() -> None:
    assert sorted(path.stem for path in (HERE / "jobs").glob("*.yaml")) == [
        case for case in ROWS if case not in REFUSED
    ]

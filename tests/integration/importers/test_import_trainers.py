"""Imported ModelTrainers: muster sends the same requests as SDK 3.

`trainer_requests.json` has the CreateTrainingJob calls of `trainers_workload.py` with the SageMaker SDK 3.27.0,
recorded where botocore sends them, with canned answers of STS, IAM and S3, in us-west-2.
"""

import json
from pathlib import Path

from muster.api.document import JSON
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from support.import_runs import ImportFolder

HERE = Path(__file__).parent
OURS = "trainer-0123456789-1"


def nameless(body: JSON, name: str) -> JSON:
    """Return the request with the training job's name replaced in every text."""
    replaced: JSON = json.loads(json.dumps(body).replace(name, "NAME"))
    return replaced


def test_the_requests_are_those_of_sdk_3(import_folder: ImportFolder) -> None:
    (import_folder.folder / "src").mkdir()
    for name in ("train.py", "run.sh", "requirements.txt"):
        (import_folder.folder / "src" / name).write_text("", encoding="utf-8")
    outcome = import_folder.run_file((HERE / "trainers_workload.py").read_text(encoding="utf-8"), role=None)
    assert outcome.err == ""

    ours: dict[str, JSON] = {}
    for document in load_documents(outcome.out, "imported.yaml"):
        job = validate(document)
        body = render_request(job, RequestSettings("us-west-2", "111122223333", OURS), load_image_facts()).body
        ours[job.metadata.name] = nameless(body, OURS)
    theirs: list[dict[str, JSON]] = json.loads((HERE / "trainer_requests.json").read_text(encoding="utf-8"))
    sent = {str(body["TrainingJobName"]): body for body in theirs}
    assert ours == {name.rpartition("-")[0]: nameless(body, name) for name, body in sent.items()}

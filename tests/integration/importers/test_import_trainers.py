"""Imported ModelTrainers: muster sends the same requests as SDK 3.

`trainer_requests.json` has the CreateTrainingJob calls of `trainers_workload.py` with the SageMaker SDK 3.27.0,
recorded where botocore sends them, with canned answers of STS, IAM and S3, in us-west-2.
"""

import json
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from muster.api.document import JSON
from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from support.import_runs import ImportFolder

HERE = Path(__file__).parent
OURS = "trainer-0123456789-1"
ROWS = yaml.safe_load((HERE / "import_trainers.yaml").read_text(encoding="utf-8"))

TRAINER = """\
import sagemaker
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import CheckpointConfig, Compute, SourceCode, StoppingCondition
from sagemaker.train.distributed import SMP, Torchrun

def trainer(**more):
    return ModelTrainer(training_image="i:1", role=sagemaker.get_execution_role(), **more)

"""


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


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['path']}-{number}" for number, row in enumerate(ROWS)])
def test_the_job_of_a_trainer(import_folder: ImportFolder, row: dict[str, JSON]) -> None:
    result: JSON = import_folder.run_file(TRAINER + dedent(str(row["script"]))).spec
    for name in str(row["path"]).split("."):
        assert isinstance(result, dict)
        result = result[name]
    assert result == row["is"]


def test_a_distribution_beside_a_command_only_sets_hyperparameters(import_folder: ImportFolder) -> None:
    source = "SourceCode(source_dir='.', entry_script='train.py', command='python train.py')"
    distributed = "Torchrun(smp=SMP(tensor_parallel_degree=2))"
    outcome = import_folder.run_file(f"{TRAINER}trainer(source_code={source}, distributed={distributed}).train()")
    assert "ModelTrainer(distributed=...): the SDK ignores it beside SourceCode(command=...)" in outcome.err
    assert outcome.spec["launcher"] == {"perNode": {}}
    assert outcome.block["rawHyperparameters"] == {"mp_parameters": '{"tensor_parallel_degree": 2}'}

"""muster's requests for a launch script's ModelTrainers equal the requests of the SageMaker SDK 3."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.importers.sagemaker.standin.muster_standin import trainer
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT
from sagemaker_sdk.launch_script import trainer_script
from sagemaker_sdk.trainer_cases import TrainerCase, trainer_cases
from support.imported_requests import ACCOUNT, ROLE, Answer, record_runs, render_run

pytestmark = pytest.mark.long

FILES = [f"code/{name}" for name in ("train.py", "train.sh", "parts/train.py", "parts/more.txt", "requirements.txt")]
SEED, COUNT = 2, 180

SAME_MEANING: Mapping[str, str] = {
    'InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType: unset != "FullyReplicated"': "the default",
    "StoppingCondition.MaxRuntimeInSeconds: unset != 86400": "the default",
    "EnableManagedSpotTraining: false != unset": "the default: a job without spot",
    "EnableNetworkIsolation: false != unset": "the default: a job without networkIsolation",
    "EnableInterContainerTrafficEncryption: false != unset": "the default: a job without the encryption",
    "InfraCheckConfig.EnableInfraCheck: unset != false": "the default: the SDK drops False from objects",
    "HyperParameters: {} != unset": "both have none",
}
"""Fields in which the requests differ, with the SDK's and muster's value, and why that makes no difference."""

REFUSED_BY_MUSTER: Mapping[str, str] = {
    "keepAliveSeconds with spot": "SageMaker refuses it",
    "mpi is not supported on Trainium": "SDK 2 refuses it",
    "mpi without sagemaker.framework": "SageMaker's mpirun runs no shell script",
    "the archive's name must end in .tar.gz": "a job's code is an archive, not a folder in S3",
    "CheckpointConfig(s3_uri=...): is missing": "the SDK's folder changes with each attempt, so that none would resume",
    "rename the file to requirements.txt": "muster's start script installs only this file",
    "found a dictionary; Networking is expected": "only objects have names that the import checks",
    "spec.procsPerNode: found Auto with instance groups": "all nodes have one number of ranks",
    "Compute(instance_preferences=...): a job has no field": "a job has one instance type",
    "ModelTrainer(model_package_config=...): a job has no field": "it is only for models of SageMaker's recipes",
}
"""Parts of muster's messages about jobs that the SDK sends, and why muster refuses these jobs."""

FIELDS = (
    *("AlgorithmSpecification", "CheckpointConfig", "EnableInterContainerTrafficEncryption", "EnableNetworkIsolation"),
    *("EnableManagedSpotTraining", "Environment", "HyperParameters", "InfraCheckConfig", "InputDataConfig"),
    *("OutputDataConfig", "RemoteDebugConfig", "ResourceConfig", "RetryStrategy", "RoleArn", "SessionChainingConfig"),
    *("StoppingCondition", "Tags", "TensorBoardOutputConfig", "TrainingJobName", "VpcConfig"),
)
"""All fields of CreateTrainingJob that ModelTrainer sends, except ModelPackageConfig."""

NOT_ARGUMENTS = {"Compute": {"selected_instance_type", "selected_instance_count"}, "ModelTrainer": {"config_mgr"}}
"""Fields of the SDK's classes that are for its own use, or for SageMaker's answers."""


@pytest.fixture(scope="module")
def cases() -> list[TrainerCase]:
    return trainer_cases(SEED, COUNT)


@pytest.fixture(scope="module")
def classes() -> dict[str, list[str]]:
    """Return the arguments of the stand-in's classes for SDK 3."""
    configs = {**trainer.CONFIG_CLASSES, **trainer.DISTRIBUTED_CLASSES}
    return {**{name: list(kind.names) for name, kind in configs.items()}, "ModelTrainer": list(trainer.PARAMETERS)}


@pytest.fixture(scope="module")
def answers(cases: list[TrainerCase], classes: dict[str, list[str]]) -> dict[str, Answer]:
    """Return the SDK's answers by the cases' names, and the fields of its classes: it takes seconds to start."""
    question = {"account": ACCOUNT, "role": ROLE, "files": FILES, "cases": [asdict(case) for case in cases]}
    program = ROOT / "tests" / "sagemaker_sdk" / "sent_trainer_requests.py"
    lines = sagemaker_sdk.run_script(program, json.dumps({**question, "classes": list(classes)}), sagemaker_sdk.LOCK_3)
    return {answer.pop("name"): answer for answer in map(json.loads, lines.splitlines())}


def test_muster_sends_what_model_trainer_sends(
    cases: list[TrainerCase], answers: dict[str, Answer], tmp_path: Path
) -> None:
    runs = record_runs(trainer_script(cases, ROLE), tmp_path, FILES)
    expected = SAME_MEANING.keys() | REFUSED_BY_MUSTER.keys()
    found: dict[str, set[str]] = {}
    for case, run in zip(cases, runs, strict=True):
        theirs = answers[case.name]
        # The SDK's name of a training job has the time.
        name = str(get_request(theirs).get("TrainingJobName", case.name))
        found[case.name] = find_differences(theirs, render_run(run, tmp_path, case.region, name))
    assert {name: differences - expected for name, differences in found.items() if differences - expected} == {}
    # A difference that no case has any more is no difference.
    assert expected - set().union(*found.values()) == set()


def test_the_cases_have_every_field_of_the_request(answers: dict[str, Answer]) -> None:
    requests = [get_request(answer) for answer in answers.values() if "request" in answer]
    assert len(requests) > 140
    assert {name for request in requests for name in request} == {*FIELDS, "ModelPackageConfig"}


def test_the_stand_in_has_the_arguments_of_the_classes(
    answers: dict[str, Answer], classes: dict[str, list[str]]
) -> None:
    theirs = {
        name: [field for field in list_texts(fields) if field not in NOT_ARGUMENTS.get(name, ())]
        for name, fields in answers["classes"].items()
    }
    assert theirs == classes


def find_differences(theirs: Answer, ours: Answer) -> set[str]:
    """Return how the answers differ: messages of refusals, and fields with both values."""
    if "refused" in ours:
        message = str(ours["refused"])
        parts = {part for part in REFUSED_BY_MUSTER if part in message}
        return set() if "refused" in theirs else parts or {message}
    if "refused" in theirs:
        return {f"only the SDK refuses it: {theirs['refused']}"}
    return set(compare("", get_request(theirs), get_request(ours)))


def compare(name: str, theirs: JSON, ours: JSON) -> Iterator[str]:
    """Yield the fields that differ. All items of a list have the same name."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            path = f"{name}.{key}" if name else key
            if key in theirs and key in ours:
                yield from compare(path, theirs[key], ours[key])
            else:
                texts = (json.dumps(fields[key]) if key in fields else "unset" for fields in (theirs, ours))
                yield f"{path}: {' != '.join(texts)}"
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for their_item, our_item in zip(theirs, ours, strict=True):
            yield from compare(f"{name}[]", their_item, our_item)
    elif theirs != ours:
        yield f"{name}: {json.dumps(theirs)} != {json.dumps(ours)}"


def get_request(answer: Answer) -> dict[str, JSON]:
    request = answer.get("request")
    return request if isinstance(request, dict) else {}


def list_texts(value: JSON) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []

"""muster's requests for a launch script's estimators equal the SageMaker SDK's own requests."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import validate
from muster.api.yaml.load import decode_documents
from muster.importers.sagemaker.jobs import SourceOptions, import_jobs
from muster.importers.sagemaker.notebook import ScriptPart
from muster.importers.sagemaker.script_run import ScriptRequest, UnsupportedQuestion, run_script
from muster.importers.sagemaker.translate.recording import EstimatorFit, Recording, TrainerRun
from muster.importers.sagemaker.translate.translation import AccountOptions
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT
from sagemaker_sdk.estimator_cases import Case, cases
from sagemaker_sdk.fitting_cases import fitting_cases
from sagemaker_sdk.launch_script import SOURCE, launch_script

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/SageMakerRole"
GOLDEN = ROOT / "tests" / "unit" / "render" / "sagemaker" / "golden"
SCRIPTS = ["train.py", "train.sh", "parts/train.py"]
SEED, COUNT = 20261121, 250

REFUSED_BY_THE_SERVICE = ("keepAliveSeconds with spot", "maxWaitSeconds must be at least maxRunSeconds")
"""Requests that the SDK sends although SageMaker refuses them, and muster doesn't."""


def asked_of_the_sdk(questions: Sequence[Case]) -> dict[str, Mapping[str, JSON]]:
    """Return the SDK's answers by the cases' names: {"request": ...} or {"refused": ...}."""
    question = {"account": ACCOUNT, "role": ROLE, "scripts": SCRIPTS, "cases": [asdict(case) for case in questions]}
    lines = sagemaker_sdk.run_script(ROOT / "tests" / "sagemaker_sdk" / "sent_requests.py", json.dumps(question))
    return {answer.pop("name"): answer for answer in map(json.loads, lines.splitlines())}


def imported_runs(questions: Sequence[Case], folder: Path) -> list[EstimatorFit | TrainerRun]:
    """Return the calls of `fit`, from a launch script's own process."""
    for name in SCRIPTS:
        (folder / SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / SOURCE / name).touch()
    text = launch_script(questions, ROLE)
    part = ScriptPart("launch.py", text)
    recording = run_script(
        ScriptRequest((part,), folder, folder, (), sys.executable, {"PATH": os.defpath}, 120), no_answer
    )
    assert recording.failure is None
    return list(recording.runs)


def no_answer(about: Mapping[str, str]) -> str:
    raise UnsupportedQuestion(f"no script here asks for {about}")


def asked_of_muster(case: Case, run: EstimatorFit | TrainerRun, folder: Path) -> Mapping[str, JSON]:
    """muster's requests: the script's call imported as a job, the job's file read, its request rendered."""
    place = AccountOptions(None, ACCOUNT, None)
    result = import_jobs(Recording([run]), "launch.py", place, SourceOptions(folder, None), lambda _: None)
    if result.problems:
        return {"refused": "; ".join(result.problems)}
    [document] = decode_documents(result.documents[0].encode(), "launch.yaml")
    try:
        return {
            "request": render_request(
                validate(document), RequestSettings(case.region, ACCOUNT, case.name), load_image_facts()
            ).body
        }
    except InvalidResource as invalid:
        return {"refused": "; ".join(str(problem) for problem in invalid.problems)}


def differences(
    questions: Sequence[Case], answers: Mapping[str, Mapping[str, JSON]], folder: Path
) -> list[tuple[Case, Mapping[str, JSON], Mapping[str, JSON]]]:
    """Return the cases in which muster's request differs from the SDK's, with both requests."""
    result = []
    for case, run in zip(questions, imported_runs(questions, folder), strict=True):
        theirs, ours = answers[case.name], asked_of_muster(case, run, folder)
        both_refuse = "refused" in theirs and "refused" in ours
        knows_better = any(reason in str(ours.get("refused")) for reason in REFUSED_BY_THE_SERVICE)
        if ours != theirs and not both_refuse and not knows_better:
            result.append((case, theirs, ours))
    return result


@pytest.fixture(scope="module")
def answers() -> dict[str, Mapping[str, JSON]]:
    """Return the SDK's answers, requested once for all tests: it takes seconds to start."""
    return asked_of_the_sdk([*cases(SEED, COUNT), *fitting_cases(), *golden_cases()])


def golden_cases() -> list[Case]:
    document = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))
    return [Case(f"golden-{name.replace('_', '-')}", "us-west-2", **case) for name, case in document.items()]


def test_muster_sends_what_the_sdk_sends_and_refuses_what_it_refuses(
    answers: dict[str, Mapping[str, JSON]], tmp_path: Path
) -> None:
    questions = cases(SEED, COUNT)
    assert differences(questions, answers, tmp_path) == []
    # enough of both for a meaningful comparison
    sent = [case for case in questions if "request" in answers[case.name]]
    assert len(sent) > COUNT * 0.6
    assert len(questions) - len(sent) > COUNT * 0.1
    assert {case.estimator for case in sent} == {"Estimator", "PyTorch", "TensorFlow", "HuggingFace"}


def test_each_way_of_distributing_ranks_is_sent_as_the_sdk_sends_it(
    answers: dict[str, Mapping[str, JSON]], tmp_path: Path
) -> None:
    questions = fitting_cases()
    assert differences(questions, answers, tmp_path) == []
    sent = [case for case in questions if "request" in answers[case.name]]
    torch = {"torch_distributed", "pytorchddp", "mpi", "dataparallel", "modelparallel"}
    ways = {
        "PyTorch": torch,
        "HuggingFace": torch,
        "TensorFlow": {"parameter_server", "multi_worker_mirrored_strategy", "mpi", "dataparallel"},
    }
    for estimator, expected in ways.items():
        assert expected <= {way for case in sent if case.estimator == estimator for way in enabled(case)}
    assert {case.kwargs["instance_type"] for case in sent} == {"ml.p4d.24xlarge", "ml.trn1.32xlarge"}


def enabled(case: Case) -> set[str]:
    """Return the distributions that a case enables, with SageMaker's own libraries by their names."""
    distribution = case.kwargs["distribution"]
    assert isinstance(distribution, dict)
    libraries = distribution.get("smdistributed")
    ways = {**distribution, **(libraries if isinstance(libraries, dict) else {})}
    return {name for name, way in ways.items() if isinstance(way, dict) and way.get("enabled") is True}


def test_the_sdk_sends_the_golden_requests(answers: dict[str, Mapping[str, JSON]]) -> None:
    """So the recording is right, and the goldens are this SDK's."""
    for case in golden_cases():
        file = GOLDEN / f"{case.name.removeprefix('golden-').replace('-', '_')}.json"
        assert answers[case.name] == {"request": json.loads(file.read_text(encoding="utf-8"))}, case.name

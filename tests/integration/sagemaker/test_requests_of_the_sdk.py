"""muster's requests for a launch script's estimators equal the SageMaker SDK's own requests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT
from sagemaker_sdk.estimator_cases import Case, cases
from sagemaker_sdk.fitting_cases import fitting_cases
from sagemaker_sdk.launch_script import SOURCE, launch_script
from support.imported_requests import ACCOUNT, ROLE, Answer, record_runs, render_run

GOLDEN = ROOT / "tests" / "unit" / "render" / "sagemaker" / "golden"
SCRIPTS = ["train.py", "train.sh", "parts/train.py"]
SEED, COUNT = 20261121, 250

REFUSED_BY_THE_SERVICE = ("keepAliveSeconds with spot", "maxWaitSeconds must be at least maxRunSeconds")
"""Requests that the SDK sends although SageMaker refuses them, and muster doesn't."""


def asked_of_the_sdk(questions: Sequence[Case]) -> dict[str, Answer]:
    """Return the SDK's answers by the cases' names: {"request": ...} or {"refused": ...}."""
    question = {"account": ACCOUNT, "role": ROLE, "scripts": SCRIPTS, "cases": [asdict(case) for case in questions]}
    lines = sagemaker_sdk.run_script(ROOT / "tests" / "sagemaker_sdk" / "sent_requests.py", json.dumps(question))
    return {answer.pop("name"): answer for answer in map(json.loads, lines.splitlines())}


def differences(
    questions: Sequence[Case], answers: Mapping[str, Answer], folder: Path
) -> list[tuple[Case, Answer, Answer]]:
    """Return the cases in which muster's request differs from the SDK's, with both requests."""
    result = []
    runs = record_runs(launch_script(questions, ROLE), folder, [f"{SOURCE}/{name}" for name in SCRIPTS])
    for case, run in zip(questions, runs, strict=True):
        theirs, ours = answers[case.name], render_run(run, folder, case.region, case.name)
        both_refuse = "refused" in theirs and "refused" in ours
        knows_better = any(reason in str(ours.get("refused")) for reason in REFUSED_BY_THE_SERVICE)
        if ours != theirs and not both_refuse and not knows_better:
            result.append((case, theirs, ours))
    return result


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """Return the SDK's answers, requested once for all tests: it takes seconds to start."""
    return asked_of_the_sdk([*cases(SEED, COUNT), *fitting_cases(), *golden_cases()])


def golden_cases() -> list[Case]:
    document = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))
    return [Case(f"golden-{name.replace('_', '-')}", "us-west-2", **case) for name, case in document.items()]


def test_muster_sends_what_the_sdk_sends_and_refuses_what_it_refuses(
    answers: dict[str, Answer], tmp_path: Path
) -> None:
    questions = cases(SEED, COUNT)
    assert differences(questions, answers, tmp_path) == []
    # enough of both for a meaningful comparison
    sent = [case for case in questions if "request" in answers[case.name]]
    assert len(sent) > COUNT * 0.6
    assert len(questions) - len(sent) > COUNT * 0.1
    assert {case.estimator for case in sent} == {"Estimator", "PyTorch", "TensorFlow", "HuggingFace"}


def test_each_way_of_distributing_ranks_is_sent_as_the_sdk_sends_it(answers: dict[str, Answer], tmp_path: Path) -> None:
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


def test_the_sdk_sends_the_golden_requests(answers: dict[str, Answer]) -> None:
    """So the recording is right, and the goldens are this SDK's."""
    for case in golden_cases():
        file = GOLDEN / f"{case.name.removeprefix('golden-').replace('-', '_')}.json"
        assert answers[case.name] == {"request": json.loads(file.read_text(encoding="utf-8"))}, case.name

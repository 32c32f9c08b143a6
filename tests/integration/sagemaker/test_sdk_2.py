"""What muster knows of the SageMaker SDK 2 equals the SDK's own: its requests for a launch script's estimators, the
arguments of its classes in their order, and its lists of what SageMaker supports.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from muster.api.document import JSON
from muster.api.spec.sagemaker import support as ours
from muster.importers.sagemaker.standin.muster_standin import estimators, inputs, session
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT
from sagemaker_sdk.estimator_cases import Case, cases
from sagemaker_sdk.fitting_cases import fitting_cases
from sagemaker_sdk.launch_script import SOURCE, launch_script
from support.imported_requests import ACCOUNT, ROLE, Answer, record_runs, render_run

GOLDEN = ROOT / "tests" / "unit" / "render" / "sagemaker" / "golden"
SCRIPTS = ["train.py", "train.sh", "parts/train.py"]
SEED, COUNT = 20261121, 120

REFUSED_BY_THE_SERVICE = ("keepAliveSeconds with spot", "maxWaitSeconds must be at least maxRunSeconds")
"""Requests that the SDK sends although SageMaker refuses them, and muster doesn't."""


@dataclass(frozen=True)
class Sdk:
    """What the SDK answers. `requests` has by each case's name {"request": ...} or {"refused": ...}."""

    signatures: Mapping[str, Sequence[str]]
    lists: Mapping[str, JSON]
    requests: Mapping[str, Answer]


@pytest.fixture(scope="module")
def sdk() -> Sdk:
    """Ask the SDK once for all tests: it takes seconds to start."""
    questions = [*cases(SEED, COUNT), *fitting_cases(), *golden_cases()]
    question = {"account": ACCOUNT, "role": ROLE, "scripts": SCRIPTS, "cases": [asdict(case) for case in questions]}
    lines = sagemaker_sdk.run_script(ROOT / "tests" / "sagemaker_sdk" / "sent_requests.py", json.dumps(question))
    first, *answers = map(json.loads, lines.splitlines())
    return Sdk(first["signatures"], first["lists"], {answer.pop("name"): answer for answer in answers})


@pytest.fixture(scope="module")
def answers(sdk: Sdk) -> Mapping[str, Answer]:
    return sdk.requests


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


def golden_cases() -> list[Case]:
    document = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))
    return [Case(f"golden-{name.replace('_', '-')}", "us-west-2", **case) for name, case in document.items()]


def test_muster_sends_what_the_sdk_sends_and_refuses_what_it_refuses(
    answers: Mapping[str, Answer], tmp_path: Path
) -> None:
    questions = cases(SEED, COUNT)
    assert differences(questions, answers, tmp_path) == []
    # enough of both for a meaningful comparison
    sent = [case for case in questions if "request" in answers[case.name]]
    assert len(sent) > COUNT * 0.6
    assert len(questions) - len(sent) > COUNT * 0.1
    assert {case.estimator for case in sent} == {"Estimator", "PyTorch", "TensorFlow", "HuggingFace"}


def test_each_way_of_distributing_ranks_is_sent_as_the_sdk_sends_it(
    answers: Mapping[str, Answer], tmp_path: Path
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


def test_the_sdk_sends_the_golden_requests(answers: Mapping[str, Answer]) -> None:
    """So the recording is right, and the goldens are this SDK's."""
    for case in golden_cases():
        file = GOLDEN / f"{case.name.removeprefix('golden-').replace('-', '_')}.json"
        assert answers[case.name] == {"request": json.loads(file.read_text(encoding="utf-8"))}, case.name


@pytest.mark.parametrize(
    "kind", [estimators.Estimator, estimators.PyTorch, estimators.TensorFlow, estimators.HuggingFace]
)
def test_estimators_have_the_sdk_s_arguments(sdk: Sdk, kind: type[estimators.Estimator]) -> None:
    first = sdk.signatures[kind.class_name]
    beside = (
        sdk.signatures["EstimatorBase"]
        if kind.class_name == "Estimator"
        else [*sdk.signatures["Framework"], *sdk.signatures["EstimatorBase"]]
    )
    assert list(kind.positional_parameters) == first
    assert sorted(kind.list_parameters()) == sorted({*first, *beside})


def test_smaller_classes_have_the_sdk_s_arguments(sdk: Sdk) -> None:
    our_kinds = {**inputs.INPUTS, **inputs.DEBUGGER}
    compared = {name: list(kind.names) for name, kind in our_kinds.items() if name in sdk.signatures}
    assert compared == {name: sdk.signatures[name] for name in compared}
    assert len(compared) == 10
    assert list(session.PARAMETERS) == sdk.signatures["Session"]


def test_methods_have_the_sdk_s_arguments(sdk: Sdk) -> None:
    assert list(inspect.signature(estimators.Estimator.fit).parameters)[1:] == sdk.signatures["fit"]
    assert list(inspect.signature(session.Session.upload_data).parameters)[1:] == sdk.signatures["upload_data"]
    assert ["region", *inputs.RETRIEVE] == sdk.signatures["retrieve"]


def test_the_lists_are_the_sdk_s(sdk: Sdk) -> None:
    versions = {name.lower(): list(known) for name, known in ours.DATA_PARALLEL_VERSIONS.items()}
    assert sdk.lists == {
        "SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS": versions,
        "TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS": list(ours.TORCH_DISTRIBUTED_ON_GPU),
        "TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS": list(ours.TORCH_DISTRIBUTED_ON_TRAINIUM),
        "DEBUGGER_UNSUPPORTED_REGIONS": list(ours.REGIONS_WITHOUT_DEBUGGER),
        "PROFILER_UNSUPPORTED_REGIONS": list(ours.REGIONS_WITHOUT_DEBUGGER),
        "UNSUPPORTED_DLC_IMAGE_FOR_SM_PARALLELISM": [ours.IMAGE_WITHOUT_PARALLEL_LIBRARIES],
        "HIGHEST_LEGACY_MODE_ONLY_VERSION": ".".join(str(part) for part in ours.LAST_TENSORFLOW_WITHOUT_SCRIPTS),
    }

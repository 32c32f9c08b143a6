"""The stand-in has the same arguments as the SageMaker SDK's own classes, in their order."""

import inspect
import json

import pytest

from muster.importers.sagemaker.standin.muster_standin import estimators, inputs, session
from muster_dev import sagemaker_sdk
from muster_dev.paths import ROOT


@pytest.fixture(scope="module")
def sdk() -> dict[str, list[str]]:
    script = ROOT / "tests" / "sagemaker_sdk" / "signatures.py"
    result: dict[str, list[str]] = json.loads(sagemaker_sdk.run_script(script, ""))
    return result


@pytest.mark.parametrize(
    "kind", [estimators.Estimator, estimators.PyTorch, estimators.TensorFlow, estimators.HuggingFace]
)
def test_estimators(sdk: dict[str, list[str]], kind: type[estimators.Estimator]) -> None:
    first = sdk[kind.class_name]
    beside = sdk["EstimatorBase"] if kind.class_name == "Estimator" else [*sdk["Framework"], *sdk["EstimatorBase"]]
    assert list(kind.positional_parameters) == first
    assert sorted(kind.list_parameters()) == sorted({*first, *beside})


def test_smaller_classes(sdk: dict[str, list[str]]) -> None:
    ours = {**inputs.INPUTS, **inputs.DEBUGGER}
    compared = {name: list(kind.names) for name, kind in ours.items() if name in sdk}
    assert compared == {name: sdk[name] for name in compared}
    assert len(compared) == 10
    assert list(session.PARAMETERS) == sdk["Session"]


def test_methods(sdk: dict[str, list[str]]) -> None:
    assert list(inspect.signature(estimators.Estimator.fit).parameters)[1:] == sdk["fit"]
    assert list(inspect.signature(session.Session.upload_data).parameters)[1:] == sdk["upload_data"]
    assert ["region", *inputs.RETRIEVE] == sdk["retrieve"]

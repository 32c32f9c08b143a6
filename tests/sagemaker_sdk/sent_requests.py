"""Print what the SageMaker SDK 2 says of itself, and its CreateTrainingJob requests. It runs as a program, without
muster and network.

The input is a JSON object: account, role, the names of scripts, and cases, each with its name, region, estimator's
class, kwargs and the inputs of `fit`; objects of the SDK's classes have a `__type__`. The output is one JSON object per
line: first the SDK's signatures and lists, then for each case its name, and the request as botocore would send it, or
the reason why the SDK refuses.
"""

import json
import logging
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError
from sagemaker import image_uris, utils
from sagemaker.debugger import (
    CollectionConfig,
    DebuggerHookConfig,
    ProfilerConfig,
    ProfilerRule,
    Rule,
    TensorBoardOutputConfig,
)
from sagemaker.estimator import Estimator
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import FileSystemInput, ShuffleConfig, TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from sagemaker.telemetry import telemetry_logging
from sagemaker.tensorflow import TensorFlow

from sagemaker_sdk.signatures import find_signatures
from sagemaker_sdk.supported import find_lists
from sagemaker_sdk.wire import Wire, connect, refuse_connection

ESTIMATORS = {"Estimator": Estimator, "PyTorch": PyTorch, "TensorFlow": TensorFlow, "HuggingFace": HuggingFace}
KINDS = (
    *(CollectionConfig, DebuggerHookConfig, FileSystemInput, ProfilerConfig, ShuffleConfig, TensorBoardOutputConfig),
    TrainingInput,
)
TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in KINDS},
    "Rule": Rule.custom,
    "ProfilerRule": ProfilerRule.custom,
}


def main() -> None:
    logging.disable()
    # The SDK reports each call to AWS; opting out in its configuration makes each call take a second.
    telemetry_logging._send_telemetry_request = lambda *_, **__: None
    # The SDK reads the same files again for each job.
    utils._botocore_resolver = lru_cache(utils._botocore_resolver)
    image_uris.config_for_framework = lru_cache(image_uris.config_for_framework)
    with patch("socket.getaddrinfo", refuse_connection), patch("socket.socket.connect", refuse_connection):
        answer_all(json.load(sys.stdin), Path(sys.argv[1]))


def answer_all(question: dict[str, Any], file: Path) -> None:
    wire = Wire(question["account"], {})
    sessions = {region: Session(connect(region, wire)) for region in {case["region"] for case in question["cases"]}}
    with tempfile.TemporaryDirectory() as source, file.open("w", encoding="utf-8") as answers:
        for name in question["scripts"]:
            (Path(source) / name).parent.mkdir(exist_ok=True)
            (Path(source) / name).touch()
        answers.write(json.dumps({"signatures": find_signatures(), "lists": find_lists()}) + "\n")
        for case in question["cases"]:
            script = {"source_dir": source, "entry_point": "train.py"}
            has_script = case["estimator"] != "Estimator" or "entry_point" in case["kwargs"]
            fixed = {"role": question["role"], "sagemaker_session": sessions[case["region"]]}
            fixed.update(script if has_script else {})
            answers.write(json.dumps({"name": case["name"], **asked(case, fixed, wire)}) + "\n")


def asked(case: dict[str, Any], fixed: dict[str, Any], wire: Wire) -> dict[str, Any]:
    """Return the request for a case, or the SDK's message if there is none."""
    wire.requests.clear()
    groups: dict[str, Any] = {}
    try:
        kwargs = {name: built(value, groups) for name, value in case["kwargs"].items()}
        estimator = ESTIMATORS[case["estimator"]](**{**fixed, **kwargs})
        estimator.fit(built(case["inputs"], groups), wait=False, job_name=case["name"])
    except (ValueError, AttributeError, TypeError, KeyError, RuntimeError, BotoCoreError) as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    [request] = wire.requests
    return {"request": request}


def built(value: Any, groups: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [built(item, groups) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: built(item, groups) for name, item in value.items() if name != "__type__"}
    kind = value.get("__type__")
    if kind == "InstanceGroup":
        # The SDK compares groups by identity.
        return groups.setdefault(fields["instance_group_name"], InstanceGroup(**fields))
    if kind == "TrainingInput" and "config" in fields:
        made = TrainingInput("s3://replaced/by-config")
        made.config = fields["config"]
        return made
    return TYPES[kind](**fields) if kind else fields


if __name__ == "__main__":
    main()

"""Print the CreateTrainingJob requests of SDK 3's ModelTrainer. It runs as a program, without muster and network.

The input is a JSON object: account, role, the names of files and classes, and cases, each with the fields of
`TrainerCase`. The output is one JSON object per line: the case's name, and the request as botocore would send it, or
the reason why the SDK refuses. The first line has the fields of the SDK's classes. One process answers everything,
because the SDK takes seconds to start.
"""

import json
import logging
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError
from sagemaker.core import shapes
from sagemaker.core.helper import session_helper
from sagemaker.core.telemetry import telemetry_logging
from sagemaker.core.training import configs
from sagemaker.train import ModelTrainer, distributed

from sagemaker_sdk.wire import Wire, connect, refuse_connection


def main() -> None:
    logging.disable()
    telemetry_logging._send_telemetry_request = lambda *_, **__: None
    # The SDK reads the same file again for each job.
    session_helper.botocore_resolver = lru_cache(session_helper.botocore_resolver)
    file = Path(sys.argv[1]).resolve()
    question = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder, patch("socket.getaddrinfo", refuse_connection):
        os.chdir(folder)
        for name in question["files"]:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).touch()
        with file.open("w", encoding="utf-8") as answers, patch("socket.socket.connect", refuse_connection):
            answer_all(question, answers.write)
        os.chdir("/")


def answer_all(question: dict[str, Any], write: Any) -> None:
    write(json.dumps({"name": "classes", **{name: fields_of(name) for name in question["classes"]}}) + "\n")
    role = question["role"]
    wire = Wire(question["account"], {role.rpartition("/")[2]: role})
    connections = {region: connect(region, wire) for region in {case["region"] for case in question["cases"]}}

    @lru_cache
    def open_session(region: str, settings: tuple[tuple[str, str], ...]) -> session_helper.Session:
        return session_helper.Session(connections[region], **dict(settings))

    for case in question["cases"]:
        session = open_session(case["region"], tuple(case["session"].items()))
        fixed = {"role": role, "sagemaker_session": session}
        write(json.dumps({"name": case["name"], **asked(case, fixed, wire)}) + "\n")


def asked(case: dict[str, Any], fixed: dict[str, Any], wire: Wire) -> dict[str, Any]:
    """Return the request for a case, or the SDK's message if there is none."""
    wire.requests.clear()
    try:
        trainer = ModelTrainer(**{**fixed, **built(case["arguments"])})
        for name, value in case["methods"].items():
            getattr(trainer, name)(built(value))
        trainer.train(built(case["inputs"]), wait=False, logs=False)
    except (ValueError, AttributeError, TypeError, KeyError, RuntimeError, BotoCoreError) as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    [request] = wire.requests
    return {"request": request}


def built(value: Any) -> Any:
    if isinstance(value, list):
        return [built(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: built(item) for name, item in value.items() if name != "__type__"}
    kind = value.get("__type__")
    return find_class(kind)(**fields) if kind else fields


def find_class(name: str) -> Any:
    return next(getattr(module, name) for module in (configs, distributed, shapes) if hasattr(module, name))


def fields_of(name: str) -> list[str]:
    kind = ModelTrainer if name == "ModelTrainer" else find_class(name)
    return list(kind.model_fields)


if __name__ == "__main__":
    main()

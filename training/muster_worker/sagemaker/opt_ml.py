"""The node's /opt/ml: the folders and configuration files that a SageMaker script expects, and its word of failure."""

from __future__ import annotations

import json
import os

from muster_worker.contract.schema import Plan
from muster_worker.sagemaker import container

_FOLDERS = ("input/config", "input/data", "model", "output/data", "output/intermediate", "checkpoints")


def prepare(root: str, plan: Plan, node: int, host: container.Host) -> None:
    """Make the folders that are missing and write input/config. Raises `OSError` where that cannot be done."""
    for folder in _FOLDERS:
        # On one machine the nodes share their output's folder, and prepare it at the same time.
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    _write(root, "hyperparameters", container.hyperparameter_file(plan))
    _write(root, "inputdataconfig", container.input_data_config(plan.channels))
    _write(root, "resourceconfig", container.resource_config(plan, node, host))


def write_failure(root: str, text: str) -> None:
    """Leave why the node failed in output/failure, unless the script has already said it better."""
    path = os.path.join(root, "output", "failure")
    try:
        with open(path, "x", encoding="utf-8", errors="replace") as file:
            file.write(text[: container.MAX_FAILURE_CHARS])
    except OSError:
        return  # the script's own text stays, and a full disk must not hide the failure itself


def _write(root: str, name: str, content: object) -> None:
    path = os.path.join(root, "input", "config", f"{name}.json")
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(temporary, path)

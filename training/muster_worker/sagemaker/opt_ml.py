"""Prepares the node's /opt/ml: the folders and configuration files for SageMaker scripts, and output/failure."""

from __future__ import annotations

import json
import os

from muster_worker.contract.schema import Plan
from muster_worker.sagemaker import container

_FOLDERS = ("input/config", "input/data", "model", "output/data", "output/intermediate", "checkpoints")


def prepare(root: str, plan: Plan, node: int, host: container.Host) -> None:
    """Create missing folders and write input/config. Raises `OSError`."""
    for folder in _FOLDERS:
        # Nodes on one machine share the output folder and prepare it concurrently.
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    _write(root, "hyperparameters", container.build_hyperparameter_file(plan))
    _write(root, "inputdataconfig", container.build_input_data_config(plan.channels))
    _write(root, "resourceconfig", container.build_resource_config(plan, node, host))


def write_failure(root: str, text: str) -> None:
    """Write the reason of the node's failure to output/failure, unless the script has already done so."""
    path = os.path.join(root, "output", "failure")
    try:
        with open(path, "x", encoding="utf-8", errors="replace") as file:
            file.write(text[: container.MAX_FAILURE_CHARS])
    except OSError:
        return  # keep the script's text; a full disk must not hide the failure


def _write(root: str, name: str, content: object) -> None:
    path = os.path.join(root, "input", "config", f"{name}.json")
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(temporary, path)

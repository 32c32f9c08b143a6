"""Converts hyperparameters to command line arguments, as SageMaker's containers do: `--name value`.

The functions are equivalent to `mapping.to_cmd_args` and `mapping.to_env_vars` of sagemaker-training, so that a script
gets the same text on every backend.
"""

from __future__ import annotations

import json
from typing import Mapping, Tuple

from muster_worker.contract.schema import Scalar


def to_arguments(hyperparameters: Mapping[str, Scalar]) -> Tuple[str, ...]:
    """Return `--name value` for each hyperparameter, sorted by name. Names of one letter have one dash."""
    arguments = []
    for name in sorted(hyperparameters):
        arguments += [f"--{name}" if len(name) > 1 else f"-{name}", str(hyperparameters[name])]
    return tuple(arguments)


def to_text(value: object) -> str:
    """Return the text of an SM_* variable: strings unchanged, other values as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

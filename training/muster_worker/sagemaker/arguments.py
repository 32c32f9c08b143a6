"""Hyperparameters as the command line that SageMaker's containers would give: `--name value`.

Follows sagemaker-training's `mapping.to_cmd_args` and `mapping.to_env_vars`, so that a script sees the same text on
every backend.
"""

from __future__ import annotations

import json
from typing import Mapping, Tuple

from muster_worker.contract.schema import Scalar


def to_arguments(hyperparameters: Mapping[str, Scalar]) -> Tuple[str, ...]:
    """`--name value` for each, sorted by name; one-letter names get one dash; values as Python prints them."""
    arguments = []
    for name in sorted(hyperparameters):
        arguments += [f"--{name}" if len(name) > 1 else f"-{name}", str(hyperparameters[name])]
    return tuple(arguments)


def to_text(value: object) -> str:
    """A value as an SM_* variable carries it: text as it is, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

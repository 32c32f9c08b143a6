"""Where ranks of a pod find code and data, and leave snapshots and results: SageMaker's folders."""

ROOT = "/opt/ml"

CODE = f"{ROOT}/code"
CHECKPOINTS = f"{ROOT}/checkpoints"

RESULTS = ("model", "output")
"""Folders of the root, by their names."""


def channel_folder(name: str) -> str:
    """Where the data of channel `name` lies."""
    return f"{ROOT}/input/data/{name}"

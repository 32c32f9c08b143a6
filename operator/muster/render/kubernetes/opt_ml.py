"""SageMaker's folders for code, data, checkpoints and results."""

ROOT = "/opt/ml"

CODE = f"{ROOT}/code"
CHECKPOINTS = f"{ROOT}/checkpoints"

RESULTS = ("model", "output")
"""The names of the root's folders for results."""


def channel_folder(name: str) -> str:
    """The folder with the data of channel `name`."""
    return f"{ROOT}/input/data/{name}"

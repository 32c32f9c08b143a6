"""The paths of SageMaker's folders for code, data, checkpoints and results."""

ROOT = "/opt/ml"

CODE = f"{ROOT}/code"
CHECKPOINTS = f"{ROOT}/checkpoints"

RESULTS = ("model", "output")
"""The names of the folders for results, in /opt/ml."""


def get_channel_folder(name: str) -> str:
    """Return the folder with the data of channel `name`."""
    return f"{ROOT}/input/data/{name}"

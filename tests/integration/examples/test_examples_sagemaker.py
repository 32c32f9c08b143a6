"""The examples for SageMaker: SageMaker's own container toolkit executes their requests."""

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from muster.api.spec.job import Job
from muster.cli.job_file import read_job
from support import sagemaker_image
from support.example_runs import BIN, EXAMPLES, ROOT, finish, start

EXPECTED = [
    # example, its channels, ranks, the step that they reach, the files in the run's folder
    ("sagemaker_estimator", ["train", "validation"], 1, 270, ["model/model.pt"]),
    ("sagemaker_torchrun", ["train"], 4, 132, ["model/model.pt"]),
    ("sagemaker_mpi", [], 6, None, []),
]
AMAZON_S_LIBRARIES = {"sagemaker_smddp", "sagemaker_model_parallel"}
"""Only Amazon's images have the packages that these import."""

JOBS = sorted(
    path.parent.name for path in EXAMPLES.glob("sagemaker_*/job.yaml") if path.parent.name != "sagemaker_hosts"
)


def job_of(example: str) -> Job:
    return read_job(str(EXAMPLES / example / "job.yaml"))


def test_every_example_for_sagemaker_is_tried() -> None:
    assert set(JOBS) == {row[0] for row in EXPECTED} | AMAZON_S_LIBRARIES


@pytest.mark.parametrize("example", JOBS)
def test_the_code_in_the_file_is_python_of_the_image(example: str) -> None:
    spec = job_of(example).spec
    assert spec.source is not None
    assert spec.source.inline is not None
    assert spec.sagemaker is not None
    assert spec.sagemaker.framework is not None
    python = (spec.sagemaker.framework.python_version or "").removeprefix("py")
    for name, text in spec.source.inline.files.items():
        ast.parse(text, name, feature_version=(int(python[0]), int(python[1:])))


# In `make test` the toolkit runs smaller jobs (integration/run/test_run_local.py).
@pytest.mark.long
@pytest.mark.usefixtures("own_meeting_port")
@pytest.mark.parametrize(("example", "inputs", "ranks", "step", "files"), EXPECTED)
def test_example_completes(
    example: str,
    inputs: Sequence[str],
    ranks: int,
    step: int | None,
    files: Sequence[str],
    digits: Path,
    tmp_path: Path,
) -> None:
    file = str(EXAMPLES / example / "job.yaml")
    command = [str(BIN / "muster"), "run", "--local", "-f", file, "-o", "json", "--dir", str(tmp_path / "run")]
    for name in inputs:
        command += ["--input", f"{name}={digits / name}"]
    if example == "sagemaker_estimator":
        command += ["--checkpoint", str(tmp_path / "snapshots")]

    image = sagemaker_image.mpi_environment() if example == "sagemaker_mpi" else sagemaker_image.environment()
    end = finish(start(command, dict(image), ROOT))

    assert end.exit_code == 0, end.messages
    status: dict[str, Any] = json.loads(end.output)["status"]
    assert status["phase"] == "Succeeded", status["message"]
    assert [(entry["state"], entry["count"]) for entry in status["ranks"]["byState"]] == [("Succeeded", ranks)]
    assert status.get("progress", {}).get("step") == step
    assert all((tmp_path / "run" / name).is_file() for name in files)

"""Each example's job runs to Complete with `muster run`, with the command of its first lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.example_runs import BIN, EXAMPLES, ROOT, finish, start

# Each rank imports torch, which takes seconds.
SEVERAL_RANKS = ("digits", "sagemaker_hosts", "two_dimensional")
EXPECTED = [
    # example, its channels, ranks, steps, the metrics in its status, the files in the run's folder
    ("digits", ["train", "validation"], 4, 450, {"loss", "accuracy"}, ["model/model.pt", "checkpoints/snapshot.pt"]),
    ("data_parallel", ["train", "validation"], 1, 270, {"loss", "accuracy"}, ["model/model.pt"]),
    ("sagemaker_hosts", ["train"], 2, 132, {"loss"}, ["model/model.pt"]),
    ("two_dimensional", ["train"], 4, 60, {"loss"}, ["model/model.pt"]),
]


def test_every_example_is_tried() -> None:
    # the examples with mpirun and those for SageMaker have their own modules; nccl-tests run on GPUs only
    others = {path.parent.name for path in EXAMPLES.glob("*/job.yaml") if not path.parent.name.startswith("mpi_")}
    for_sagemaker = {name for name in others if name.startswith("sagemaker_")} - {"sagemaker_hosts"}
    assert others - for_sagemaker - {"nccl_tests"} == {row[0] for row in EXPECTED}


def test_every_example_is_valid() -> None:
    files = [argument for path in sorted(EXAMPLES.glob("*/job.yaml")) for argument in ("-f", str(path))]
    end = finish(start([str(BIN / "muster"), "validate", *files], {}))
    assert end.exit_code == 0, end.messages


@pytest.mark.parametrize(
    ("example", "inputs", "ranks", "steps", "metrics", "files"),
    [pytest.param(*row, marks=[pytest.mark.long] if row[0] in SEVERAL_RANKS else []) for row in EXPECTED],
)
def test_example_completes(
    example: str,
    inputs: list[str],
    ranks: int,
    steps: int,
    metrics: set[str],
    files: list[str],
    digits: Path,
    tmp_path: Path,
) -> None:
    command = [str(BIN / "muster"), "run", "-f", str(EXAMPLES / example / "job.yaml"), "-o", "json"]
    for name in inputs:
        command += ["--input", f"{name}={digits / name}"]
    end = finish(start([*command, "--dir", str(tmp_path / "run")], {}, ROOT))
    assert end.exit_code == 0, end.messages

    status: dict[str, Any] = json.loads(end.output)["status"]
    assert status["phase"] == "Succeeded", status["message"]
    assert status["ranks"]["world"] == ranks
    assert status["progress"]["step"] == steps
    assert set(status["progress"]["metrics"]) == metrics
    assert all((tmp_path / "run" / name).is_file() for name in files)

"""Each example's job runs to Complete with `muster run`, with the command of its first lines."""

import json
import math
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.run import muster_run
from support.example_runs import BIN, EXAMPLES, ROOT, RUN_SECONDS, finish, start

# Each rank imports torch, which takes seconds.
SEVERAL_RANKS = ("digits", "sagemaker_hosts", "two_dimensional")
EXPECTED = [
    # example, its channels, ranks, steps, the metrics in its status, the files in the run's folder
    ("digits", ["train", "validation"], 4, 450, {"loss", "accuracy"}, ["model/model.pt", "checkpoints/checkpoint.pt"]),
    ("data_parallel", ["train", "validation"], 1, 270, {"loss", "accuracy"}, ["model/model.pt"]),
    ("sagemaker_hosts", ["train"], 2, 132, {"loss"}, ["model/model.pt"]),
    ("two_dimensional", ["train"], 4, 60, {"loss"}, ["model/model.pt"]),
]

BATCH = 2
"""Images of each rank's step: an epoch has enough steps that a stop comes before its end."""

RECOVERY_STEPS = 225
"""The steps of the recovery example without a failure: 5 epochs of 45."""


def test_every_example_is_tried() -> None:
    # the examples with mpirun, for SageMaker and of frameworks have their own modules; nccl-tests run on GPUs only
    others = {path.parent.name for path in EXAMPLES.glob("*/job.yaml") if not path.parent.name.startswith("mpi_")}
    for_sagemaker = {name for name in others if name.startswith("sagemaker_")} - {"sagemaker_hosts"}
    of_frameworks = {"accelerate", "deepspeed", "lightning", "ray_train", "transformers"}
    assert others - for_sagemaker - of_frameworks - {"nccl_tests", "recovery"} == {row[0] for row in EXPECTED}


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


@pytest.mark.long
def test_the_recovery_example_continues_from_its_checkpoint(digits: Path, tmp_path: Path) -> None:
    command = [str(BIN / "muster"), "run", "-f", str(EXAMPLES / "recovery" / "job.yaml"), "--logs"]
    inputs = [argument for name in ("train", "validation") for argument in ("--input", f"{name}={digits / name}")]
    end = finish(start([*command, *inputs, "--dir", str(tmp_path / "run")], {}, ROOT))
    assert end.exit_code == 0, end.messages
    shown = end.output + end.messages

    status: dict[str, Any] = yaml.safe_load((tmp_path / "run" / "job.yaml").read_text(encoding="utf-8"))["status"]
    (restart,) = status["restarts"]["history"]
    assert (restart["attempt"], restart["rank"], restart["reason"]) == (1, 2, "RankKilled")
    assert (status["phase"], status["attempt"]) == ("Succeeded", 2)
    # The second attempt trains only what the checkpoint lacks, and the summary has the restart.
    assert "resumed from" in shown
    assert 0 < restart["scriptStep"] - restart["stepsLost"] < RECOVERY_STEPS
    assert status["progress"]["step"] == RECOVERY_STEPS
    assert "attempt 1: Rank 2 on recovery-1 was killed by SIGKILL" in end.messages


def write_digits(folder: Path, nodes: int) -> Path:
    """Write the example's job with as many nodes of one rank."""
    job = yaml.safe_load((EXAMPLES / "digits" / "job.yaml").read_text(encoding="utf-8"))
    parameters = {"epochs": 3, "batch-size": BATCH, "log-every": 1}
    job["spec"] |= {"nodes": nodes, "procsPerNode": 1, "launcher": {"direct": {}}, "hyperparameters": parameters}
    job["spec"]["command"] = [sys.executable, str(EXAMPLES / "digits" / "train.py")]
    path = folder / f"digits-{nodes}.yaml"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


@pytest.mark.long
def test_an_epoch_continues_with_another_number_of_nodes_where_a_stop_has_ended_it(
    digits: Path, tmp_path: Path
) -> None:
    inputs = [argument for name in ("train", "validation") for argument in ("--input", f"{name}={digits / name}")]
    stopped = muster_run.start(tmp_path, write_digits(tmp_path, 3), "--logs", *inputs)
    muster_run.await_true(
        lambda: " step=3 " in stopped.stdout + stopped.stderr or stopped.process.poll() is not None, RUN_SECONDS
    )
    stopped.process.send_signal(signal.SIGINT)
    assert stopped.wait() != 0
    checkpoint = ["--checkpoint", str(stopped.folder / "checkpoints")]
    resumed = muster_run.run(tmp_path, write_digits(tmp_path, 2), "--logs", *inputs, *checkpoint)
    shown = resumed.stdout + resumed.stderr
    assert resumed.wait() == 0, shown

    found = re.search("at image ([0-9]+) of epoch ([0-2])", shown)
    assert found is not None, shown
    trained, epoch, images = int(found[1]), int(found[2]), len(list((digits / "train").glob("*/*.png")))
    before = epoch * math.ceil(images / (3 * BATCH)) + math.ceil(trained / (3 * BATCH))
    after = math.ceil((images - trained) / (2 * BATCH)) + (2 - epoch) * math.ceil(images / (2 * BATCH))
    assert f"epoch=2 step={before + after} accuracy=" in shown

"""The examples with mpirun run to Complete with the commands of their first lines, each with another MPI."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import mpi_installs
from support.example_runs import BIN, EXAMPLES, ROOT, clean_environment, finish, start

EXPECTED = [
    # example, the MPI that starts it, its channels, ranks, the metrics in its status
    ("mpi_messages", "openmpi5", [], 6, {"average"}),
    ("mpi_messages", "mpich", [], 6, {"average"}),
    ("mpi_c", "mpich", [], 4, {"pi"}),
    ("mpi_gradients", "openmpi5", ["train"], 4, {"loss"}),
]
LONG = (
    ("mpi_gradients", "openmpi5"),  # its four ranks import torch
    ("mpi_messages", "openmpi5"),  # the same example with an MPI whose start costs three times as much
)


def test_every_example_of_mpi_is_tried() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("mpi_*/job.yaml")} == {row[0] for row in EXPECTED}


@pytest.mark.parametrize(
    ("example", "mpi", "inputs", "ranks", "metrics"),
    [pytest.param(*row, marks=[pytest.mark.long] if row[:2] in LONG else []) for row in EXPECTED],
)
def test_example_completes(
    example: str, mpi: str, inputs: Sequence[str], ranks: int, metrics: set[str], digits: Path, tmp_path: Path
) -> None:
    variables = mpi_installs.install(mpi).add_to(clean_environment())
    variables["PYTHONPATH"] = variables["MPI4PY"]
    job = _job(example, variables, tmp_path) if example == "mpi_c" else EXAMPLES / example / "job.yaml"
    command = [str(BIN / "muster"), "run", "-f", str(job), "-o", "json", "--dir", str(tmp_path / "run")]
    for name in inputs:
        command += ["--input", f"{name}={digits / name}"]

    end = finish(start(command, variables, ROOT))

    assert end.exit_code == 0, end.messages
    status: dict[str, Any] = json.loads(end.output)["status"]
    assert status["phase"] == "Succeeded", status["message"]
    assert status["ranks"]["world"] == ranks
    assert [(entry["state"], entry["count"]) for entry in status["ranks"]["byState"]] == [("Succeeded", ranks)]
    assert set(status["progress"]["metrics"]) == metrics


def _job(example: str, variables: dict[str, str], folder: Path) -> Path:
    """Return the C program's job, with a program that is built outside of the working tree."""
    source, program = EXAMPLES / example / "averages.c", folder / "averages"
    command = ["mpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source), "-lm"]
    subprocess.run(command, check=True, env=variables)
    text = (EXAMPLES / example / "job.yaml").read_text(encoding="utf-8")
    job = folder / "job.yaml"
    job.write_text(text.replace("[training/examples/mpi_c/averages]", f"[{program}]"), encoding="utf-8")
    return job

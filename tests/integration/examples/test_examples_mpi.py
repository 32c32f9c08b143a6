"""The examples that mpirun starts, as their first lines say, to Complete: with the MPI that this machine has."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from example_runs import BIN, EXAMPLES, ROOT, finish, start
from mpi_programs import mpi_programs

EXPECTED = [
    # example, its channels, ranks, the metrics in its status, the modules that its script imports
    ("mpi_messages", [], 6, {"average"}, ["mpi4py", "numpy"]),
    ("mpi_c", [], 4, {"pi"}, []),
    ("mpi_gradients", ["train"], 4, {"loss"}, ["mpi4py", "numpy", "torch", "PIL"]),
]


def test_every_example_of_mpi_is_tried() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("mpi_*/job.yaml")} == {row[0] for row in EXPECTED}


@pytest.mark.parametrize(("example", "inputs", "ranks", "metrics", "modules"), EXPECTED)
def test_example_completes(
    example: str,
    inputs: Sequence[str],
    ranks: int,
    metrics: set[str],
    modules: Sequence[str],
    digits: Path,
    tmp_path: Path,
) -> None:
    programs = mpi_programs()
    if modules:
        programs.need(*modules)
    job = _job(example, programs.which("mpicc"), tmp_path) if example == "mpi_c" else EXAMPLES / example / "job.yaml"
    command = [str(BIN / "muster"), "run", "-f", str(job), "-o", "json", "--dir", str(tmp_path / "run")]
    for name in inputs:
        command += ["--input", f"{name}={digits / name}"]

    end = finish(start(command, {"PATH": programs.path}, ROOT))

    assert end.exit_code == 0, end.messages
    status: dict[str, Any] = json.loads(end.output)["status"]
    assert status["phase"] == "Succeeded", status["message"]
    assert status["ranks"]["world"] == ranks
    assert [(entry["state"], entry["count"]) for entry in status["ranks"]["byState"]] == [("Succeeded", ranks)]
    assert set(status["progress"]["metrics"]) == metrics


def _job(example: str, mpicc: str, folder: Path) -> Path:
    """The C program's job, of a program that is built outside of the working tree."""
    source, program = EXAMPLES / example / "averages.c", folder / "averages"
    subprocess.run([mpicc, "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source), "-lm"], check=True)
    text = (EXAMPLES / example / "job.yaml").read_text(encoding="utf-8")
    job = folder / "job.yaml"
    job.write_text(text.replace("[training/examples/mpi_c/averages]", f"[{program}]"), encoding="utf-8")
    return job

"""The job's MPI implementation must be that of the installed mpirun."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import Launcher
from muster_worker.mpi.mpirun import build_mpirun_command
from support.node_builders import make_node_context, make_plan

OPEN_MPI = "mpirun (Open MPI) 4.1.4"
HYDRA = "HYDRA build details:"


def start(folder: Path, said: str, named: str) -> str:
    program = folder / "mpirun"
    program.write_text(f"#!/bin/sh\necho asked >>{folder}/questions\necho '{said}'\n")
    return start_again(folder, named)


def start_again(folder: Path, named: str) -> str:
    program = folder / "mpirun"
    program.chmod(0o755)
    context = make_node_context(replace(make_plan("train", launcher=Launcher.MPI), mpi=named), 0)
    command, _ = build_mpirun_command(context, {"PATH": f"{folder}:/bin"}, "10.0.0.1:29500")
    return command[1]


@pytest.mark.parametrize(
    ("said", "named", "option"),
    [
        (OPEN_MPI, Mpi.AUTO, "--hostfile"),
        (OPEN_MPI, Mpi.OPEN_MPI, "--hostfile"),
        (HYDRA, Mpi.INTEL_MPI, "-f"),
        ("an unknown wrapper", Mpi.MPICH, "-f"),
    ],
)
def test_the_mpirun_that_is_meant(tmp_path: Path, said: str, named: str, option: str) -> None:
    assert start(tmp_path, said, named) == option


def test_an_mpirun_of_another_family_is_named_and_not_started(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"implementation is MPICH, but /.*/mpirun is OpenMPI: set OpenMPI or Auto"):
        start(tmp_path, OPEN_MPI, Mpi.MPICH)


def test_mpirun_is_asked_for_its_version_once_for_all_attempts(tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    assert [start(tmp_path, OPEN_MPI, Mpi.AUTO), start_again(tmp_path, Mpi.AUTO)] == ["--hostfile", "--hostfile"]
    assert questions.read_text() == "asked\n"

    assert start(tmp_path, HYDRA, Mpi.AUTO) == "-f"
    assert questions.read_text() == "asked\nasked\n"

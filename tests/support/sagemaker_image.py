"""The content of a SageMaker training image: a Python with SageMaker's toolkit, Open MPI 4 and mpi4py."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from muster_dev.cache import install_folder
from support import mpi_installs

MPI = "openmpi4"


def environment() -> Mapping[str, str]:
    """Return the variables with which a process finds the image's Python packages, this Python's programs first."""
    return {"PYTHONPATH": str(_toolkit()), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def mpi_environment() -> Mapping[str, str]:
    """Return `environment` with the image's Open MPI and mpi4py. Skips the test if they can't be installed here."""
    image = environment()
    added = mpi_installs.install_or_skip(MPI).add_to(image)
    return {**added, "PYTHONPATH": f"{added['MPI4PY']}:{image['PYTHONPATH']}"}


def fetch() -> None:
    """Download what this module's functions need, unless it is in the cache."""
    _toolkit()
    if mpi_installs.find_missing_reason(MPI) is None:
        mpi_installs.install(MPI).add_to({})


def _toolkit() -> Path:
    return install_folder("sagemaker-toolkit", "sagemaker-toolkit.txt")

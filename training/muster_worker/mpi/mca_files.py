"""Reads the MCA variables in the image's Open MPI configuration files: muster must not contradict them."""

from __future__ import annotations

import os
import shutil
from typing import Iterator, Mapping, Tuple

_NAMES = (
    "openmpi-mca-params.conf",
    "prte-mca-params.conf",
)  # the second file is for PRRTE, which starts Open MPI 5's daemons
_FOLDERS = (
    "/etc/openmpi",
    "/usr/local/etc",
    "/usr/local/mpi/etc",
    "/opt/amazon/openmpi/etc",
    "/opt/amazon/openmpi5/etc",
)
"""The folders of Debian, of builds from source, of NVIDIA's containers and of AWS' installer."""

_MAX_BYTES = 1 << 20


def read_mca_names(environment: Mapping[str, str]) -> Tuple[str, ...]:
    """Return the names of all MCA variables that configuration files set for a process with this environment.

    Sources: "Setting MCA parameter values" in the documentation of Open MPI and PRRTE; mca_base_param_files in
    ompi_info.
    """
    result = []
    for path in dict.fromkeys(_list_paths(environment)):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(_MAX_BYTES).split("\n")
        except OSError:
            continue
        names = (line.split("=", 1)[0].strip() for line in lines if "=" in line)
        result += [name for name in names if not name.startswith("#")]
    return tuple(result)


def _list_paths(environment: Mapping[str, str]) -> Iterator[str]:
    value = environment.get("OMPI_MCA_mca_base_param_files", "")
    yield from (path for path in value.replace(",", ":").split(":") if path)
    home = environment.get("HOME")
    if home:
        yield from (os.path.join(home, folder, "mca-params.conf") for folder in (".openmpi", ".prte"))
    folders = list(_FOLDERS)
    prefix = environment.get("OPAL_PREFIX")
    if prefix:
        folders.insert(0, os.path.join(prefix, "etc"))
    program = shutil.which("mpirun", path=environment.get("PATH", os.defpath))
    if program is not None:
        folders.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program))), "etc"))
    yield from (os.path.join(folder, name) for folder in folders for name in _NAMES)

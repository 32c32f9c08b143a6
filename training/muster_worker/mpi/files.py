"""The files of an MPI attempt in a node's run folder: its variables, a rank's wrapper, hosts for each mpirun."""

from __future__ import annotations

from typing import Mapping

from muster_worker.launchers.environment import Place
from muster_worker.machine.executable import write_executable
from muster_worker.mpi import host_files, node_file
from muster_worker.mpi.environment import node_variables, watch, world


def write_files(place: Place, base: Mapping[str, str]) -> None:
    """Write them. Raises `OSError`."""
    node_file.write(place.run, node_variables(base, place))
    write_executable(watch(place.run), place.python, place.archive, ("rank", "--attached", "--"))
    asked = world(place)
    names = host_files.launch_names(place.peers)
    for path, text in (
        (asked.open_mpi_hosts, host_files.open_mpi_file(names, asked.procs_per_node)),
        (asked.hydra_hosts, host_files.hydra_file(names, asked.procs_per_node)),
    ):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

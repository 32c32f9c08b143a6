"""The files of an MPI attempt in a node's run folder: its variables, a rank's wrapper, hosts for each mpirun."""

from __future__ import annotations

from typing import Mapping

from muster_worker import node_file, rank_group_hosts
from muster_worker.environment import Place
from muster_worker.executable import write_executable
from muster_worker.mpi_environment import node_variables, watch, world


def write_files(place: Place, base: Mapping[str, str]) -> None:
    """Write them. Raises `OSError`."""
    node_file.write(place.run, node_variables(base, place))
    write_executable(watch(place.run), place.python, place.archive, ("rank", "--attached", "--"))
    asked = world(place)
    names = rank_group_hosts.launch_names(place.peers)
    for path, text in (
        (asked.open_mpi_hosts, rank_group_hosts.open_mpi_file(names, asked.procs_per_node)),
        (asked.hydra_hosts, rank_group_hosts.hydra_file(names, asked.procs_per_node)),
    ):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

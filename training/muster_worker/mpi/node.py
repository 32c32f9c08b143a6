"""One node's part of an MPI world: mpirun on node 0, and on every node the daemons of mpirun.

Only node 0 detects the world's end. On other nodes daemons and ranks may start and end at any time.
"""

from __future__ import annotations

import socket
from typing import Mapping, Optional, Tuple

from muster_worker.contract.schema import AgentProblem, Credentials
from muster_worker.launchers.base import LauncherIO
from muster_worker.launchers.environment import Place
from muster_worker.launchers.launch import Launched, LaunchRefused
from muster_worker.machine import processes
from muster_worker.machine.executable import write_executable
from muster_worker.mpi import host_files, node_file
from muster_worker.mpi.environment import daemon_environment, node_variables, rank_wrapper, world
from muster_worker.mpi.mpirun import find_problem, start_mpirun
from muster_worker.network.port import hold_port
from muster_worker.remote.calls import Calls
from muster_worker.remote.program import write_program


class MpiWorld:
    """The node's part of an MPI world, until no process of it runs."""

    def __init__(
        self, place: Place, base: Mapping[str, str], credentials: Optional[Credentials], io: LauncherIO
    ) -> None:
        """Listen for calls of the other nodes. Raises `OSError`."""
        self._place = place
        self._rendezvous_port: Optional[socket.socket] = None
        self._calls: Optional[Calls] = None
        _write_files(place, base)
        if place.plan.nodes > 1:
            if credentials is None:
                raise OSError("Start has no credentials for the connections between agents")
            environment = daemon_environment(base, place)
            self._calls = Calls(place, credentials, io.port, environment, selector=io.selector, log=io.log)
        else:
            # Open MPI 4 exits without this program, even if it has no other node to call.
            write_program(place)

    def find_problem(self, base: Mapping[str, str]) -> Optional[AgentProblem]:
        """Why mpirun can't start the world; None on other nodes than 0."""
        return find_problem(self._place, base) if self._place.node == 0 else None

    def start(self, base: Mapping[str, str]) -> Tuple[Tuple[Launched, ...], Optional[LaunchRefused]]:
        """Start mpirun on node 0. Returns the process, or why it didn't start."""
        if self._place.node != 0:
            return (), None
        # The agent itself listens on the port that the peers have.
        self._rendezvous_port = hold_port()
        address = self._place.master.address
        started = start_mpirun(self._place, base, f"{address}:{self._rendezvous_port.getsockname()[1]}")
        return ((started,), None) if isinstance(started, Launched) else ((), started)

    @property
    def may_be_idle(self) -> bool:
        """Whether this part may be without a process: node 0's ends with mpirun, the others don't."""
        return self._place.node != 0

    @property
    def is_running(self) -> bool:
        """Whether a daemon that mpirun started through the agent runs here."""
        return self._calls is not None and self._calls.is_running

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` is due; None while waiting for events."""
        return None if self._calls is None else self._calls.next_step_in

    def terminate(self) -> None:
        """Send SIGTERM to the daemons."""
        if self._calls is not None:
            self._calls.terminate()

    def step(self) -> None:
        """Do what is due."""
        if self._calls is not None:
            self._calls.step()

    def on_reaped(self, end: processes.Ended) -> bool:
        """Handle the end of a child. Returns whether it was a daemon of the world."""
        return self._calls is not None and self._calls.on_reaped(end)

    def close(self) -> None:
        """Close all sockets when no process of the attempt runs."""
        if self._calls is not None:
            self._calls.close()
        if self._rendezvous_port is not None:
            self._rendezvous_port.close()


def _write_files(place: Place, base: Mapping[str, str]) -> None:
    """Write the node file, a rank's wrapper and the host files of this node. Raises `OSError`."""
    node_file.write(place.run, node_variables(base, place))
    write_executable(rank_wrapper(place.run), place.python, place.archive, ("rank", "--attached", "--"))
    mpi_world = world(place)
    names = host_files.launch_names(place.peers)
    for path, text in (
        (mpi_world.open_mpi_hosts, host_files.open_mpi_file(names, mpi_world.procs_per_node)),
        (mpi_world.hydra_hosts, host_files.hydra_file(names, mpi_world.procs_per_node)),
    ):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

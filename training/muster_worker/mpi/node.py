"""One node's part of an MPI world: mpirun on node 0, and on each node what the daemons of the others need.

No node but 0 ends by itself: its ranks come and go with mpirun's daemons, and only node 0 knows when all is over.
"""

from __future__ import annotations

import socket
from typing import Mapping, Optional, Tuple

from muster_worker.contract.schema import AgentProblem, Credentials
from muster_worker.launchers.base import Way
from muster_worker.launchers.environment import Place
from muster_worker.launchers.launch import Launched, LaunchRefused
from muster_worker.machine import processes
from muster_worker.machine.executable import write_executable
from muster_worker.mpi import host_files, node_file
from muster_worker.mpi.environment import daemon_environment, node_variables, watch, world
from muster_worker.mpi.mpirun import find_problem, start_mpirun
from muster_worker.network.port import hold_port
from muster_worker.remote.calls import Calls
from muster_worker.remote.program import write_program


class MpiWorld:
    """The node's part, from Start until no process of it is left."""

    def __init__(self, place: Place, base: Mapping[str, str], credentials: Optional[Credentials], way: Way) -> None:
        """Listen for the other nodes. Raises `OSError`."""
        self._place = place
        self._meeting: Optional[socket.socket] = None
        self._calls: Optional[Calls] = None
        _write_files(place, base)
        if place.plan.nodes > 1:
            if credentials is None:
                raise OSError("Start came without the credentials by which agents know each other")
            environment = daemon_environment(base, place)
            self._calls = Calls(place, credentials, way.port, environment, selector=way.selector, log=way.log)
        else:
            # Open MPI looks for it, and 4 ends without it, before it knows that it has nobody to call
            write_program(place)

    def find_problem(self, base: Mapping[str, str]) -> Optional[AgentProblem]:
        """Why mpirun must not be started here; None on nodes that start none."""
        return find_problem(self._place, base) if self._place.node == 0 else None

    def start(self, base: Mapping[str, str]) -> Tuple[Tuple[Launched, ...], Optional[LaunchRefused]]:
        """Start mpirun on node 0: what was started, and what could not be."""
        if self._place.node != 0:
            return (), None
        # the agent itself listens on the port that the others know
        self._meeting = hold_port()
        address = self._place.master.address
        started = start_mpirun(self._place, base, f"{address}:{self._meeting.getsockname()[1]}")
        return ((started,), None) if isinstance(started, Launched) else ((), started)

    @property
    def lasts(self) -> bool:
        """Whether this node's share goes on with no process here: node 0's ends with mpirun."""
        return self._place.node != 0

    @property
    def is_running(self) -> bool:
        """Whether another node's mpirun, or its own, has a daemon here by way of the agent."""
        return self._calls is not None and self._calls.is_running

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` has something to do; None while only events matter."""
        return None if self._calls is None else self._calls.next_step_in

    def terminate(self) -> None:
        """SIGTERM to the daemons."""
        if self._calls is not None:
            self._calls.terminate()

    def step(self) -> None:
        """What is due now."""
        if self._calls is not None:
            self._calls.step()

    def on_reaped(self, end: processes.Ended) -> bool:
        """A child has ended; whether it was a daemon of the world."""
        return self._calls is not None and self._calls.on_reaped(end)

    def close(self) -> None:
        """Let go of everything; for when no process of the attempt lives any more."""
        if self._calls is not None:
            self._calls.close()
        if self._meeting is not None:
            self._meeting.close()


def _write_files(place: Place, base: Mapping[str, str]) -> None:
    """Write this node's variables, a rank's wrapper and the hosts for each mpirun. Raises `OSError`."""
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

"""One node's part of an MPI world: mpirun on node 0, daemons of mpirun on all nodes.

Only node 0 detects the end of the world. On other nodes daemons and ranks may start and end at any time.
"""

from __future__ import annotations

import signal
import socket
from typing import Mapping, Optional, Tuple

from muster_worker.contract.schema import AgentProblem, Credentials
from muster_worker.launchers.base import LauncherIO
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.launch import LaunchFailure, StartedProcess
from muster_worker.machine import processes
from muster_worker.machine.executable import write_executable
from muster_worker.mpi import host_files, node_file
from muster_worker.mpi.environment import (
    build_daemon_environment,
    build_node_variables,
    build_world,
    get_rank_wrapper_path,
)
from muster_worker.mpi.mpirun import find_problem, start_mpirun
from muster_worker.network.port import hold_port
from muster_worker.remote.program import write_program
from muster_worker.remote.remote_commands import RemoteCommands


class MpiWorld:
    """The node's part of an MPI world, until no process of it runs."""

    def __init__(
        self,
        context: NodeContext,
        base_environment: Mapping[str, str],
        credentials: Optional[Credentials],
        io: LauncherIO,
    ) -> None:
        """Listen for commands of the other nodes. Raises `OSError`."""
        self._context = context
        self._rendezvous_socket: Optional[socket.socket] = None
        self._remote_commands: Optional[RemoteCommands] = None
        _write_files(context, base_environment)
        if context.plan.nodes > 1:
            if credentials is None:
                raise OSError("Start has no credentials for the connections between agents")
            environment = build_daemon_environment(base_environment, context)
            self._remote_commands = RemoteCommands(
                context, credentials, io.port_socket, environment, selector=io.selector, log=io.log
            )
        else:
            # Open MPI 4 fails without this program, even if the job has no other node.
            write_program(context)

    def find_problem(self, base_environment: Mapping[str, str]) -> Optional[AgentProblem]:
        """Return the reason why mpirun can't start the world; None if it can, and on all nodes except 0."""
        return find_problem(self._context, base_environment) if self._context.node == 0 else None

    def start(self, base_environment: Mapping[str, str]) -> Tuple[Tuple[StartedProcess, ...], Optional[LaunchFailure]]:
        """Start mpirun on node 0. Returns the process, or the failure."""
        if self._context.node != 0:
            return (), None
        # The agent itself listens on the port in `peers`, so the rendezvous needs another one.
        self._rendezvous_socket = hold_port()
        address = self._context.master.address
        started = start_mpirun(self._context, base_environment, f"{address}:{self._rendezvous_socket.getsockname()[1]}")
        return ((started,), None) if isinstance(started, StartedProcess) else ((), started)

    @property
    def may_be_idle(self) -> bool:
        """Whether this node may have no process while the world runs. On node 0 the world ends with mpirun."""
        return self._context.node != 0

    @property
    def is_running(self) -> bool:
        """Whether a daemon that mpirun started through the agent runs on this node."""
        return self._remote_commands is not None and self._remote_commands.is_running

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        return None if self._remote_commands is None else self._remote_commands.next_poll_in

    def terminate(self) -> None:
        """Send SIGTERM to the daemons."""
        if self._remote_commands is not None:
            self._remote_commands.terminate()

    def hasten_end(self) -> None:
        """Shorten the waits of mpirun and its daemons after their signals. Call this when no rank of this node is left.

        After each signal to its ranks, Open MPI waits for a quarter of a second (version 4: a second), unless it gets
        SIGCHLD. It misses the SIGCHLD of ranks that end before the wait begins. Other processes ignore the signal.
        """
        processes.signal_processes(processes.list_descendants(), signal.SIGCHLD)

    def poll(self) -> None:
        """Handle time limits that have passed."""
        if self._remote_commands is not None:
            self._remote_commands.poll()

    def on_reaped(self, end: processes.ProcessExit) -> bool:
        """Handle the end of a child. Returns whether it was a daemon of the world."""
        return self._remote_commands is not None and self._remote_commands.on_reaped(end)

    def close(self) -> None:
        """Close all sockets when no process of the attempt runs."""
        if self._remote_commands is not None:
            self._remote_commands.close()
        if self._rendezvous_socket is not None:
            self._rendezvous_socket.close()


def _write_files(context: NodeContext, base_environment: Mapping[str, str]) -> None:
    """Write the node file, a rank's wrapper and the host files of this node. Raises `OSError`."""
    node_file.write(context.run_dir, build_node_variables(base_environment, context))
    write_executable(
        get_rank_wrapper_path(context.run_dir), context.python, context.archive, ("rank", "--attached", "--")
    )
    mpi_world = build_world(context)
    names = host_files.choose_host_names(context.peers)
    for path, text in (
        (mpi_world.open_mpi_hosts, host_files.format_open_mpi_file(names, mpi_world.procs_per_node)),
        (mpi_world.hydra_hosts, host_files.format_hydra_file(names, mpi_world.procs_per_node)),
    ):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

"""Replaces ssh for mpirun: runs the commands of mpirun on other nodes, and sends this node's commands to other agents.

Agents authenticate each other with the attempt's certificate. An agent closes other connections after some seconds, or
at once if they send data. If there are many, it closes those from unknown addresses first.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from typing import List, Mapping, Optional, Tuple, Union

from muster_worker.agent.log import Log
from muster_worker.agent.state import Event
from muster_worker.contract.schema import Credentials, Peer
from muster_worker.launchers.environment import NodeContext
from muster_worker.machine import processes
from muster_worker.mpi import host_files
from muster_worker.rank_group.rank_links import listen
from muster_worker.remote.command_shell import choose_command_shell
from muster_worker.remote.incoming_command import ID_VARIABLE, IncomingCommand
from muster_worker.remote.outgoing_command import (
    KEEPALIVE_IDLE_SECONDS,
    KEEPALIVE_INTERVAL_SECONDS,
    OutgoingCommand,
    enable_keepalive,
)
from muster_worker.remote.program import get_socket_path, write_program
from muster_worker.remote.tls_channel import Identity

MAX_PENDING_CONNECTIONS = 32
"""Maximum number of connections without a command. For a further one the agent closes the oldest."""

MAX_REMOTE_COMMANDS = 512
"""Maximum number of running commands, and of this node's own requests. An MPI world needs a few per node."""

MAX_LOGGED_REJECTIONS = 5
"""Maximum number of log lines about rejected connections. The agent only counts the others."""

UNFENCED_SILENCE_SECONDS = 75.0
"""How long a peer may be silent in a job without a fence: as in a job with the default one."""

_BACKLOG = 256
_IPV4_MAPPED_PREFIX = "::ffff:"


class RemoteCommands:
    """The commands in both directions, handled in the node's event loop."""

    def __init__(
        self,
        context: NodeContext,
        credentials: Credentials,
        node_listener: socket.socket,
        environment: Mapping[str, str],
        *,
        selector: selectors.BaseSelector,
        log: Log,
    ) -> None:
        """Listen on `node_listener` for peers, and on another socket for this node's requests. Raises `OSError`."""
        self._context = context
        self._identity = Identity(credentials, context.run_dir)
        self._environment = environment
        self._selector = selector
        self._log = log
        self._silence_seconds = choose_silence_seconds(context.plan.fence_seconds)
        self._incoming: List[IncomingCommand] = []
        self._outgoing: List[OutgoingCommand] = []
        self._count = 0
        self._rejections = 0
        self._addresses = {peer.address for peer in context.peers}
        self._node_listener = node_listener
        node_listener.listen(_BACKLOG)
        node_listener.setblocking(False)
        self._client_listener = listen(get_socket_path(context.run_dir))
        write_program(context)
        selector.register(node_listener, selectors.EVENT_READ, self._accept_node)
        selector.register(self._client_listener, selectors.EVENT_READ, self._accept_client)

    @property
    def is_running(self) -> bool:
        """Whether a command of another node runs, even after its connection was lost."""
        return any(command.pid is not None for command in self._incoming)

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        times = [command.next_poll_at for command in self._list_commands()]
        at = min((at for at in times if at is not None), default=None)
        return None if at is None else max(0.0, at - time.monotonic())

    def poll(self) -> None:
        """Handle the commands whose time limits have passed."""
        now = time.monotonic()
        for command in self._list_commands():
            at = command.next_poll_at
            if at is not None and now >= at:
                command.poll(now)
        self._remove_finished()

    def terminate(self) -> None:
        """Send SIGTERM to the process groups of the running commands."""
        for command in self._incoming:
            if command.pid is not None:
                processes.signal_process_group(command.pid, signal.SIGTERM)

    def on_reaped(self, end: processes.ProcessExit) -> bool:
        """Handle the end of a child. Returns whether it was the process of a command."""
        for command in self._incoming:
            if command.pid == end.pid:
                command.on_reaped(end, time.monotonic())
                return True
        return False

    def close(self) -> None:
        """Close all connections. Call this only after all processes of the attempt have ended. The port stays bound."""
        for listener in (self._node_listener, self._client_listener):
            self._selector.unregister(listener)
        self._client_listener.close()
        os.unlink(get_socket_path(self._context.run_dir))
        for command in self._list_commands():
            command.close()
        self._incoming, self._outgoing = [], []
        if self._rejections > MAX_LOGGED_REJECTIONS:
            self._log.print_line(f"{self._rejections} connections to this agent were rejected")

    def _list_commands(self) -> List[Union[IncomingCommand, OutgoingCommand]]:
        return [*self._incoming, *self._outgoing]

    def _accept_node(self) -> List[Event]:
        connection = _accept(self._node_listener)
        if connection is None:
            return []
        try:
            enable_keepalive(connection, self._silence_seconds)
            channel = self._identity.accept(connection)
        except (
            OSError,
            ValueError,
        ):  # the peer only checked that this node is reachable, and has closed the connection
            connection.close()
            return []
        now = time.monotonic()
        self._close_pending(now)
        is_from_peer = _get_remote_address(channel.socket) in self._addresses
        self._count += 1
        name = f"{self._context.node}.{self._count}"
        command = IncomingCommand(name, channel, self._selector, self._start_command, now, is_from_peer=is_from_peer)
        self._incoming.append(command)
        return []

    def _close_pending(self, now: float) -> None:
        self._remove_finished()
        pending = [command for command in self._incoming if command.is_pending]
        # Close connections from unknown addresses first, then the oldest: a peer that connects to many nodes
        # may need time.
        pending.sort(key=lambda command: command.is_from_peer)
        for command in pending[: max(0, len(pending) + 1 - MAX_PENDING_CONNECTIONS)]:
            command.drop(now)
        self._remove_finished()

    def _start_command(self, command: str, name: str) -> Tuple[int, Tuple[int, int]]:
        if sum(incoming.pid is not None for incoming in self._incoming) >= MAX_REMOTE_COMMANDS:
            raise ValueError(f"{MAX_REMOTE_COMMANDS} commands of other nodes already run here")
        environment = {**self._environment, ID_VARIABLE: name}
        process = processes.start_with_vfork((choose_command_shell(environment), "-c", command), environment)
        return process.pid, processes.take_outputs(process)

    def _accept_client(self) -> List[Event]:
        self._remove_finished()
        client = _accept(self._client_listener)
        if client is not None and len(self._outgoing) < MAX_REMOTE_COMMANDS:
            self._outgoing.append(
                OutgoingCommand(
                    client,
                    self._identity,
                    self._find_peer,
                    self._selector,
                    time.monotonic(),
                    silence_seconds=self._silence_seconds,
                )
            )
        elif client is not None:
            client.close()
        return []

    def _find_peer(self, host: str) -> Union[Peer, str]:
        peers = self._context.peers
        result = host_files.find_peer(host, self._context.plan.job, peers)
        if result is not None:
            return result
        names = host_files.choose_host_names(peers)
        return f"the job has no node {host!r}; mpirun's host file has {names[0]} to {names[-1]}"

    def _remove_finished(self) -> None:
        for command in self._incoming:
            if command.problem is not None:
                self._log_rejection(command.problem)
                command.problem = None
        self._incoming = [command for command in self._incoming if not command.is_finished]
        self._outgoing = [command for command in self._outgoing if not command.is_finished]

    def _log_rejection(self, reason: str) -> None:
        self._rejections += 1
        if self._rejections <= MAX_LOGGED_REJECTIONS:
            self._log.print_line(f"a connection to this agent was rejected: {reason}")


def choose_silence_seconds(fence_seconds: float) -> float:
    """Return how long a peer may be silent before the commands on it count as lost.

    A loss of contact that is shorter than the fence ends no rank, so it may end no connection of mpirun: it can begin
    just before a keepalive probe, and end just after one. 0: the job has no fence.
    """
    if not fence_seconds:
        return UNFENCED_SILENCE_SECONDS
    return fence_seconds + KEEPALIVE_IDLE_SECONDS + 3 * KEEPALIVE_INTERVAL_SECONDS


def _accept(listener: socket.socket) -> Optional[socket.socket]:
    try:
        connection, _ = listener.accept()
    except OSError:  # no connection is waiting, or no descriptor is free: the client retries or gives up
        return None
    connection.setblocking(False)
    return connection


def _get_remote_address(connection: socket.socket) -> str:
    """Return the remote address; "" if the connection is already closed."""
    try:
        address = str(connection.getpeername()[0])
    except OSError:
        return ""
    # On a socket for both families an IPv4 address has this prefix (RFC 4291, 2.5.5.2).
    return address[len(_IPV4_MAPPED_PREFIX) :] if address.startswith(_IPV4_MAPPED_PREFIX) else address

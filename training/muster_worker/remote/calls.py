"""An attempt's calls between nodes: runs commands of other nodes on this node, and sends this node's commands to them.

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
from muster_worker.remote.call_shell import choose_call_shell
from muster_worker.remote.incoming_call import ID_VARIABLE, IncomingCall
from muster_worker.remote.outgoing_call import OutgoingCall, enable_keepalive
from muster_worker.remote.program import get_socket_path, write_program
from muster_worker.remote.tls_channel import Identity

MAX_PENDING_CONNECTIONS = 32
"""Maximum number of connections without a command. For a further one the agent closes the oldest."""

MAX_CALLS = 512
"""Maximum number of running commands, and of this node's own requests. An MPI world needs a few per node."""

MAX_LOGGED_REJECTIONS = 5
"""Maximum number of log lines about rejected connections. The agent only counts the others."""

_BACKLOG = 256
_IPV4_MAPPED_PREFIX = "::ffff:"


class Calls:
    """The calls in both directions, handled in the node's event loop."""

    def __init__(
        self,
        context: NodeContext,
        credentials: Credentials,
        port: socket.socket,
        environment: Mapping[str, str],
        *,
        selector: selectors.BaseSelector,
        log: Log,
    ) -> None:
        """Listen on `port`, which peers connect to, and on a socket for this node's requests. Raises `OSError`."""
        self._context = context
        self._identity = Identity(credentials, context.run_dir)
        self._environment = environment
        self._selector = selector
        self._log = log
        self._incoming: List[IncomingCall] = []
        self._outgoing: List[OutgoingCall] = []
        self._count = 0
        self._rejections = 0
        self._addresses = {peer.address for peer in context.peers}
        self._port = port
        port.listen(_BACKLOG)
        port.setblocking(False)
        self._client_listener = listen(get_socket_path(context.run_dir))
        write_program(context)
        selector.register(port, selectors.EVENT_READ, self._accept_node)
        selector.register(self._client_listener, selectors.EVENT_READ, self._accept_client)

    @property
    def is_running(self) -> bool:
        """Whether a command of another node runs, even after its connection was lost."""
        return any(call.pid is not None for call in self._incoming)

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        times = [call.next_poll_at for call in self._list_calls()]
        at = min((at for at in times if at is not None), default=None)
        return None if at is None else max(0.0, at - time.monotonic())

    def poll(self) -> None:
        """Handle the calls whose time limits have passed."""
        now = time.monotonic()
        for call in self._list_calls():
            at = call.next_poll_at
            if at is not None and now >= at:
                call.poll(now)
        self._remove_finished()

    def terminate(self) -> None:
        """Send SIGTERM to the process groups of the running commands."""
        for call in self._incoming:
            if call.pid is not None:
                processes.signal_process_group(call.pid, signal.SIGTERM)

    def on_reaped(self, end: processes.ProcessExit) -> bool:
        """Handle the end of a child. Returns whether it was the command of a call."""
        for call in self._incoming:
            if call.pid == end.pid:
                call.on_reaped(end, time.monotonic())
                return True
        return False

    def close(self) -> None:
        """Close all connections when no process of the attempt runs. The port stays bound."""
        for listener in (self._port, self._client_listener):
            self._selector.unregister(listener)
        self._client_listener.close()
        os.unlink(get_socket_path(self._context.run_dir))
        for call in self._list_calls():
            call.close()
        self._incoming, self._outgoing = [], []
        if self._rejections > MAX_LOGGED_REJECTIONS:
            self._log.print_line(f"{self._rejections} connections to this agent were rejected")

    def _list_calls(self) -> List[Union[IncomingCall, OutgoingCall]]:
        return [*self._incoming, *self._outgoing]

    def _accept_node(self) -> List[Event]:
        connection = _accept(self._port)
        if connection is None:
            return []
        try:
            enable_keepalive(connection)
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
        call = IncomingCall(name, channel, self._selector, self._start_command, now, is_from_peer=is_from_peer)
        self._incoming.append(call)
        return []

    def _close_pending(self, now: float) -> None:
        self._remove_finished()
        pending = [call for call in self._incoming if call.is_pending]
        # Close connections from unknown addresses first, then the oldest: a peer that calls many nodes may need time.
        pending.sort(key=lambda call: call.is_from_peer)
        for call in pending[: max(0, len(pending) + 1 - MAX_PENDING_CONNECTIONS)]:
            call.drop(now)
        self._remove_finished()

    def _start_command(self, command: str, name: str) -> Tuple[int, Tuple[int, int]]:
        if sum(call.pid is not None for call in self._incoming) >= MAX_CALLS:
            raise ValueError(f"{MAX_CALLS} commands of other nodes already run here")
        environment = {**self._environment, ID_VARIABLE: name}
        process = processes.start_with_vfork((choose_call_shell(environment), "-c", command), environment)
        return process.pid, processes.take_outputs(process)

    def _accept_client(self) -> List[Event]:
        self._remove_finished()
        client = _accept(self._client_listener)
        if client is not None and len(self._outgoing) < MAX_CALLS:
            self._outgoing.append(
                OutgoingCall(client, self._identity, self._find_peer, self._selector, time.monotonic())
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
        """Remove finished calls."""
        for call in self._incoming:
            if call.problem is not None:
                self._log_rejection(call.problem)
                call.problem = None
        self._incoming = [call for call in self._incoming if not call.is_finished]
        self._outgoing = [call for call in self._outgoing if not call.is_finished]

    def _log_rejection(self, reason: str) -> None:
        self._rejections += 1
        if self._rejections <= MAX_LOGGED_REJECTIONS:
            self._log.print_line(f"a connection to this agent was rejected: {reason}")


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

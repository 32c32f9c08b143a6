"""One attempt's calls between nodes: commands that other nodes want run here, and those that this one wants there.

Agents show each other the attempt's certificate and believe no other. Whoever else connects is dropped: after some
seconds, at once when it says something, and sooner when many of its kind come, those from no node's address first.
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
from muster_worker.launchers.environment import Place
from muster_worker.machine import processes
from muster_worker.mpi import host_files
from muster_worker.rank_group.rank_links import listen
from muster_worker.remote.call_shell import call_shell
from muster_worker.remote.incoming_call import ID_VARIABLE, IncomingCall
from muster_worker.remote.outgoing_call import OutgoingCall, keep_alive
from muster_worker.remote.program import desk, write_program
from muster_worker.remote.tls_channel import Identity

MAX_STRANGERS = 32
"""Connections that haven't said what they want: beyond so many the oldest is closed."""

MAX_CALLS = 512
"""Commands that run at a time, and requests of this node's own: daemons of one world, one or a few a node."""

MAX_TOLD = 5
"""Lines in the log about connections that were not believed; the rest is counted."""

_BACKLOG = 256
_MAPPED = "::ffff:"


class Calls:
    """Both directions. Everything happens in the node's loop."""

    def __init__(
        self,
        place: Place,
        credentials: Credentials,
        port: socket.socket,
        environment: Mapping[str, str],
        *,
        selector: selectors.BaseSelector,
        log: Log,
    ) -> None:
        """Listen on `port`, the one that peers were told, and for this node's own. Raises `OSError`."""
        self._place = place
        self._identity = Identity(credentials, place.run)
        self._environment = environment
        self._selector = selector
        self._log = log
        self._incoming: List[IncomingCall] = []
        self._outgoing: List[OutgoingCall] = []
        self._count = 0
        self._distrusted = 0
        self._addresses = {peer.address for peer in place.peers}
        self._port = port
        port.listen(_BACKLOG)
        port.setblocking(False)
        self._desk = listen(desk(place.run))
        write_program(place)
        selector.register(port, selectors.EVENT_READ, self._accept_node)
        selector.register(self._desk, selectors.EVENT_READ, self._accept_client)

    @property
    def is_running(self) -> bool:
        """Whether a command that came from another node runs, or one was started by somebody who is gone."""
        return any(call.pid is not None for call in self._incoming)

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` has something to do; None while only events matter."""
        times = [call.next_step_at for call in self._all()]
        at = min((at for at in times if at is not None), default=None)
        return None if at is None else max(0.0, at - time.monotonic())

    def step(self) -> None:
        """What is due now."""
        now = time.monotonic()
        for call in self._all():
            at = call.next_step_at
            if at is not None and now >= at:
                call.step(now)
        self._sweep()

    def terminate(self) -> None:
        """SIGTERM to the commands that run here, and to what is in their process groups."""
        for call in self._incoming:
            if call.pid is not None:
                processes.signal_session(call.pid, signal.SIGTERM)

    def on_reaped(self, end: processes.Ended) -> bool:
        """A child has ended; whether it was a call's command."""
        for call in self._incoming:
            if call.pid == end.pid:
                call.on_reaped(end, time.monotonic())
                return True
        return False

    def close(self) -> None:
        """Hang up everywhere; for when no process of the attempt lives any more. The port stays held."""
        for listener in (self._port, self._desk):
            self._selector.unregister(listener)
        self._desk.close()
        os.unlink(desk(self._place.run))
        for call in self._all():
            call.close()
        self._incoming, self._outgoing = [], []
        if self._distrusted > MAX_TOLD:
            self._log.say(f"{self._distrusted} connections to this agent were not believed")

    def _all(self) -> List[Union[IncomingCall, OutgoingCall]]:
        return [*self._incoming, *self._outgoing]

    def _accept_node(self) -> List[Event]:
        connection = _accept(self._port)
        if connection is None:
            return []
        try:
            keep_alive(connection)
            channel = self._identity.accept(connection)
        except (OSError, ValueError):  # gone again: a peer that only proved that it reaches us
            connection.close()
            return []
        now = time.monotonic()
        self._make_room(now)
        from_peer = _address(channel.socket) in self._addresses
        self._count += 1
        name = f"{self._place.node}.{self._count}"
        call = IncomingCall(name, channel, self._selector, self._begin, now, from_peer=from_peer)
        self._incoming.append(call)
        return []

    def _make_room(self, now: float) -> None:
        self._sweep()
        strangers = [call for call in self._incoming if call.is_stranger]
        # a peer may need time to say something, as one that calls many nodes; of the others the oldest has had the most
        strangers.sort(key=lambda call: call.from_peer)
        for call in strangers[: max(0, len(strangers) + 1 - MAX_STRANGERS)]:
            call.drop(now)
        self._sweep()

    def _begin(self, command: str, name: str) -> Tuple[int, Tuple[int, int]]:
        if sum(call.pid is not None for call in self._incoming) >= MAX_CALLS:
            raise ValueError(f"{MAX_CALLS} commands of other nodes run here already")
        environment = {**self._environment, ID_VARIABLE: name}
        process = processes.start_quickly((call_shell(environment), "-c", command), environment)
        return process.pid, processes.take_outputs(process)

    def _accept_client(self) -> List[Event]:
        self._sweep()
        client = _accept(self._desk)
        if client is not None and len(self._outgoing) < MAX_CALLS:
            self._outgoing.append(OutgoingCall(client, self._identity, self._find, self._selector, time.monotonic()))
        elif client is not None:
            client.close()
        return []

    def _find(self, host: str) -> Union[Peer, str]:
        peers = self._place.peers
        result = host_files.find(host, self._place.plan.job, peers)
        if result is not None:
            return result
        names = host_files.launch_names(peers)
        return f"no node of this job is called {host!r}; they are {names[0]} to {names[-1]}, in mpirun's host file"

    def _sweep(self) -> None:
        """Forget what is over."""
        for call in self._incoming:
            if call.problem is not None:
                self._distrust(call.problem)
                call.problem = None
        self._incoming = [call for call in self._incoming if not call.over]
        self._outgoing = [call for call in self._outgoing if not call.over]

    def _distrust(self, why: str) -> None:
        self._distrusted += 1
        if self._distrusted <= MAX_TOLD:
            self._log.say(f"a connection to this agent was not believed: {why}")


def _accept(listener: socket.socket) -> Optional[socket.socket]:
    try:
        connection, _ = listener.accept()
    except OSError:  # nobody waits any more, or we ran out of descriptors: they try again, or give up
        return None
    connection.setblocking(False)
    return connection


def _address(connection: socket.socket) -> str:
    """Where a connection comes from; "" when it is gone again."""
    try:
        address = str(connection.getpeername()[0])
    except OSError:
        return ""
    # our socket is one for both families (RFC 4291, 2.5.5.2)
    return address[len(_MAPPED) :] if address.startswith(_MAPPED) else address

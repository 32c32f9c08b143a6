"""A command of this node's mpirun for another node: the client's request, and the connection to that node's agent."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from typing import Callable, List, Optional, Tuple, Union

from muster_worker.agent.state import Event
from muster_worker.contract.schema import Peer
from muster_worker.remote import frames
from muster_worker.remote.event_registration import EventRegistration
from muster_worker.remote.frames import BadFrame
from muster_worker.remote.tls_channel import MAX_UNSENT_BYTES, READ_BYTES, Channel, ChannelLost, Identity

CONNECT_SECONDS = 60.0
"""Time limit for a connection: the other agent may get its Start command later than this one."""

RETRY_SECONDS = 0.1

KEEPALIVE_IDLE_SECONDS = 15
KEEPALIVE_INTERVAL_SECONDS = 5

FindPeer = Callable[[str], Union[Peer, str]]
"""Returns the peer with this host name, or an error message."""


class OutgoingCommand:
    """A client's connection and the connection to the requested node. `is_finished` is true when both are closed."""

    def __init__(
        self,
        client: socket.socket,
        identity: Identity,
        find_peer: FindPeer,
        selector: selectors.BaseSelector,
        now: float,
        *,
        silence_seconds: float,
    ) -> None:
        client.setblocking(False)
        self.is_finished = False
        self._client = client
        self._identity = identity
        self._find_peer = find_peer
        self._selector = selector
        self._silence_seconds = silence_seconds
        self._request = frames.Reader(frames.RUN)
        self._answer = frames.Reader(frames.OUT, frames.ERR, frames.EXITED, frames.SIGNALLED, frames.REFUSED)
        self._command = b""
        self._peer: Optional[Peer] = None
        self._deadline = now + CONNECT_SECONDS
        self._retry_at: Optional[float] = None
        self._socket: Optional[socket.socket] = None  # while connecting
        self._channel: Optional[Channel] = None
        self._unsent = bytearray()  # for the client
        self._is_answer_complete = False  # no more data for the client
        self._client_registration = EventRegistration(selector, client.fileno(), self._on_client)
        self._peer_registration: Optional[EventRegistration] = None
        self._client_registration.set_events(selectors.EVENT_READ)

    @property
    def next_poll_at(self) -> Optional[float]:
        """When to call `poll` next; None while waiting for events."""
        if self.is_finished or self._peer is None or (self._channel is not None and self._channel.is_open):
            return None
        return self._deadline if self._retry_at is None else min(self._deadline, self._retry_at)

    def poll(self, now: float) -> None:
        """Connect again if the retry is due, or refuse the request after the deadline."""
        at = self.next_poll_at
        if at is None or now < at or self._peer is None:
            return
        if now >= self._deadline:
            self._send_refusal(f"its agent doesn't answer at {self._peer.address}:{self._peer.port}")
        else:
            self._connect(self._peer)

    def close(self) -> None:
        """Close both connections."""
        if not self.is_finished:
            self.is_finished = True
            self._close_peer_connection()
            self._client_registration.close()
            self._client.close()

    def _on_client(self) -> List[Event]:
        try:
            if self._unsent:
                del self._unsent[: self._client.send(self._unsent)]
                self._update_events()
            else:
                self._read_request()
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, BadFrame):  # the client has exited. Closing the connection stops its command
            self.close()
        return []

    def _read_request(self) -> None:
        data = self._client.recv(READ_BYTES)
        if not data:
            self.close()
        for _, payload in self._request.feed(data):
            if self._peer is not None or self._is_answer_complete:
                raise BadFrame("a second request")
            host, _, self._command = payload.partition(b"\0")
            result = self._find_peer(os.fsdecode(host))
            if isinstance(result, str):
                self._send_to_client(frames.REFUSED, result.encode("utf-8", "replace")[: frames.MAX_END_BYTES])
            else:
                self._peer = result
                self._connect(result)

    def _connect(self, peer: Peer) -> None:
        self._retry_at = None
        family = socket.AF_INET6 if ":" in peer.address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        code = connection.connect_ex((peer.address, peer.port))
        if code not in (0, errno.EINPROGRESS):
            connection.close()
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return
        self._socket = connection
        self._peer_registration = EventRegistration(self._selector, connection.fileno(), self._on_peer)
        self._peer_registration.set_events(selectors.EVENT_WRITE)

    def _on_peer(self) -> List[Event]:
        try:
            if self._channel is None and not self._start_tls():
                return []
            if self._channel is not None:
                self._receive(self._channel.advance())
        except ChannelLost as error:
            self._send_refusal(f"the connection to its agent was lost: {error}")
        except BadFrame as error:
            self._send_refusal(f"its agent sent an invalid frame: {error}")
        else:
            self._update_events()
        return []

    def _start_tls(self) -> bool:
        """Start TLS on the connection, or schedule a retry. Raises `ChannelLost`."""
        connection = self._socket
        if connection is None:
            return False
        code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            self._close_peer_connection()
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return False
        enable_keepalive(connection, self._silence_seconds)
        try:
            self._channel = self._identity.connect(connection)
        except OSError as error:
            raise ChannelLost(str(error)) from None
        self._socket = None
        if self._peer_registration is not None:  # ssl keeps the descriptor's number
            self._peer_registration.set_events(self._channel.events)
        self._channel.write(frames.encode(frames.RUN, self._command))
        return True

    def _receive(self, data: bytes) -> None:
        for kind, payload in self._answer.feed(data):
            self._send_to_client(kind, payload)

    def _send_to_client(self, kind: bytes, payload: bytes) -> None:
        if not self._is_answer_complete:
            self._unsent += frames.encode(kind, payload)
            self._is_answer_complete = kind in (frames.EXITED, frames.SIGNALLED, frames.REFUSED)
            self._update_events()

    def _send_refusal(self, reason: str) -> None:
        self._close_peer_connection()
        name = "" if self._peer is None else f"node {self._peer.node}: "
        self._send_to_client(frames.REFUSED, f"{name}{reason}".encode("utf-8", "replace")[: frames.MAX_END_BYTES])

    def _update_events(self) -> None:
        """Register for the events that can be handled now. Data is read only while the client reads, too."""
        if self.is_finished:
            return
        if self._is_answer_complete and not self._unsent:
            self.close()
            return
        # Both events also report a closed client.
        self._client_registration.set_events(selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ)
        if self._channel is not None and self._peer_registration is not None:
            self._channel.is_paused = len(self._unsent) >= MAX_UNSENT_BYTES
            self._peer_registration.set_events(self._channel.events)

    def _close_peer_connection(self) -> None:
        if self._peer_registration is not None:
            self._peer_registration.close()
            self._peer_registration = None
        for connection in (self._channel, self._socket):
            if connection is not None:
                connection.close()
        self._channel = self._socket = None


def enable_keepalive(connection: socket.socket, silence_seconds: float) -> None:
    """Close the connection when its peer has been silent for `silence_seconds`, instead of after hours."""
    milliseconds = int(1000 * silence_seconds)
    for level, option, value in (*_KEEP_ALIVE, (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)):
        connection.setsockopt(level, option, value)


_KEEP_ALIVE: Tuple[Tuple[int, int, int], ...] = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SECONDS),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""Linux ignores TCP_KEEPCNT where TCP_USER_TIMEOUT is set."""

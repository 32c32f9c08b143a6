"""Serves Kubeflow Trainer's progress protocol to rank 0, on the loopback address of its node.

The node's event loop calls the handlers, so no connection may block it. The senders are untrusted: the server limits
the number, the time and the rate of connections, and the rate of reports. The token is in a file that only the ranks'
user can read.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import replace
from typing import List, Mapping, Optional

from muster_worker.agent.log import Log
from muster_worker.agent.state import Event, MetricRecord
from muster_worker.agent.trainer_progress import TrainerReport
from muster_worker.launchers.environment import NodeContext
from muster_worker.rank import trainer_variables
from muster_worker.rank.trainer_socket import TrainerSocket
from muster_worker.rank_group.trainer_request import (
    ReportedStatus,
    RequestHead,
    RequestRefused,
    parse_body,
    parse_head,
)

MAX_CONNECTIONS = 8
"""Maximum number of open connections. A further connection closes the oldest one."""

CONNECTION_SECONDS = 5.0
"""Time limit for a request: the time-out of the known clients."""

CONNECTIONS_PER_SECOND = 100.0
REPORTS_PER_SECOND = 2.0
"""Maximum rates, with bursts of a second's and of 10 reports. The known clients send a report every 5 s."""

MAX_REPORT_BURST = 10.0

PAUSE_SECONDS = 1.0
"""Time without new connections when no descriptor is free."""

_PHRASES = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
}


class TrainerServer:
    """Serves the socket of one attempt."""

    def __init__(self, selector: selectors.BaseSelector, trainer_socket: TrainerSocket) -> None:
        self.variables = trainer_socket.variables
        self._selector = selector
        self._token = trainer_socket.token
        self._listener = trainer_socket.listener
        self._connections: List[_Connection] = []
        self._accepts = _RateLimit(CONNECTIONS_PER_SECOND, CONNECTIONS_PER_SECOND)
        self._reports = _RateLimit(REPORTS_PER_SECOND, MAX_REPORT_BURST)
        self._resume_at: Optional[float] = None  # accepts no connections until then
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def next_poll_at(self) -> Optional[float]:
        """The time at which `poll` is due; None while waiting for connections."""
        times = [connection.ends_at for connection in self._connections]
        return min(times if self._resume_at is None else [*times, self._resume_at], default=None)

    def poll(self) -> None:
        """Close connections that took too long, and accept connections again after a pause."""
        now = time.monotonic()
        for connection in [connection for connection in self._connections if now >= connection.ends_at]:
            self._drop(connection)
        if self._resume_at is not None and now >= self._resume_at:
            self._resume_at = None
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Close all connections and the socket."""
        for connection in list(self._connections):
            self._drop(connection)
        if self._resume_at is None:
            self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> List[Event]:
        now = time.monotonic()
        wait = self._accepts.take(now)
        if wait > 0:
            self._pause(now + wait)
            return []
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return []
        except OSError:  # no descriptor is free
            self._pause(now + PAUSE_SECONDS)
            return []
        if len(self._connections) >= MAX_CONNECTIONS:
            self._drop(self._connections[0])
        client.setblocking(False)
        connection = _Connection(client, now + CONNECTION_SECONDS)
        self._connections.append(connection)
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(connection))
        return []

    def _pause(self, until: float) -> None:
        self._selector.unregister(self._listener)
        self._resume_at = until

    def _receive(self, connection: _Connection) -> List[Event]:
        # Another handler of the same turn of the event loop may have closed it.
        if connection not in self._connections:
            return []
        try:
            status = connection.receive(self._token)
            if status is None:
                if connection.is_closed:
                    self._drop(connection)
                return []
        except RequestRefused as refusal:
            self._answer(connection, refusal.code, refusal.reason)
            return []
        if self._reports.take(time.monotonic()) > 0:
            self._answer(connection, 429, f"at most {REPORTS_PER_SECOND:g} reports per second")
            return []
        self._answer(connection, 200, "")
        return list_events(status, time.monotonic())

    def _answer(self, connection: _Connection, code: int, text: str) -> None:
        body = f"{text}\n" if text else "{}"
        kind = "text/plain" if text else "application/json"
        head = f"HTTP/1.1 {code} {_PHRASES[code]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
        try:
            connection.socket.send(f"{head}\r\nConnection: close\r\n\r\n{body}".encode("ascii"))
        except OSError:
            pass  # the client has gone
        self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._connections.remove(connection)


class TrainerEndpoint:
    """The server of the node's current attempt, if its ranks include rank 0."""

    def __init__(self, selector: selectors.BaseSelector, log: Log) -> None:
        self._selector = selector
        self._log = log
        self._server: Optional[TrainerServer] = None

    def begin_attempt(self, context: NodeContext, environment: Mapping[str, str]) -> NodeContext:
        """Replace the server. Returns the context with the new server's variables; without a server it has none."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if context.node == 0 and trainer_variables.URL not in environment:
            try:
                trainer_socket = TrainerSocket(context.run_dir, context.plan.collector_ca)
                self._server = TrainerServer(self._selector, trainer_socket)
            except OSError as error:
                self._log.print_line(f"Transformers can't report its progress: {error}")
        return replace(context, trainer_variables={} if self._server is None else self._server.variables)

    @property
    def next_poll_at(self) -> Optional[float]:
        """The time at which `poll` is due; None while nothing is due."""
        return None if self._server is None else self._server.next_poll_at

    def poll(self) -> None:
        """Let the server close connections that took too long."""
        if self._server is not None:
            self._server.poll()


def list_events(status: ReportedStatus, at: float) -> List[Event]:
    """Return the events of a report that arrived at `at`: the progress, and a metric of rank 0 for each number."""
    report = TrainerReport(at, status.percent, status.remaining_seconds, status.step, status.total_steps)
    return [report, *(MetricRecord(name, value, 0, at) for name, value in status.metrics.items())]


class _Connection:
    """A connection with the part of its request that has arrived. It may stay open until `ends_at`."""

    def __init__(self, client: socket.socket, ends_at: float) -> None:
        self.socket = client
        self.ends_at = ends_at
        self.is_closed = False
        self._data = bytearray()
        self._head: Optional[RequestHead] = None

    def receive(self, token: str) -> Optional[ReportedStatus]:
        """Read available data. Returns the report if the request is complete. Raises `RequestRefused`."""
        try:
            data = self.socket.recv(64 * 1024)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            data = b""
        self.is_closed = not data
        self._data += data
        if self._head is None:
            self._head = parse_head(bytes(self._data), token)
        if self._head is None or len(self._data) < self._head.body_start + self._head.body_bytes:
            return None
        start = self._head.body_start
        return parse_body(bytes(self._data[start : start + self._head.body_bytes]))


class _RateLimit:
    """A token bucket: `rate` per second, and up to `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._updated_at = 0.0

    def take(self, now: float) -> float:
        """Take one, and return 0; or return the seconds until one is available."""
        self._level = min(self._burst, self._level + (now - self._updated_at) * self._rate)
        self._updated_at = now
        if self._level < 1:
            return (1 - self._level) / self._rate
        self._level -= 1
        return 0.0

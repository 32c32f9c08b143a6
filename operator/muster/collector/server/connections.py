"""Limit the number of the collector's connections, and the time that each has to authenticate.

An unauthenticated connection has not sent a known pod's token yet. The number of unauthenticated connections is
limited, in total and for each address, so that they can't crowd out pods. This module accepts connections itself,
because asyncio's server counts them only after the TLS handshake.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.collector.server.connection_limits import ConnectionLimits
from muster.collector.server.cpu_budgets import CpuBudgets
from muster.collector.server.handshake_queue import HandshakeQueue
from muster.collector.server.refusal import RefusalReason
from muster.collector.server.refusal_counter import RefusalCounter
from muster.collector.server.tls import TlsProtocol
from muster.collector.trust.tokens import PodClaim

ACCEPT_CPU_SECONDS = 0.002
"""After accepting connections for this processor time, let other tasks run, so that reports are not delayed."""

ACCEPT_RETRY_SECONDS = 0.1
"""The delay after the process ran out of file descriptors."""

AUTHENTICATION_CPU_SECONDS = 0.1
"""The maximum processor time of a connection before it sends its token: more than any agent needs."""

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER that resets a connection when it is closed."""


@dataclass(eq=False)
class AcceptedConnection:
    """An accepted connection."""

    address: str
    connections: "Connections"
    connection: socket.socket
    accepted_at: float  # monotonic seconds
    expiry: asyncio.TimerHandle | None = None
    handshake: asyncio.Task[None] | None = None
    transport: asyncio.WriteTransport | None = None
    pod: PodClaim | None = None
    accept_seconds: float = 0.0  # processor time to accept it
    cpu_seconds: float = 0.0  # processor time afterwards, before authentication

    def authenticate(self, pod: PodClaim) -> None:
        """Record the connection's pod, after its first valid token."""
        if self.pod != pod:
            self.connections.authenticate(self, pod)

    def refuse(self, reason: RefusalReason) -> None:
        """Close the connection without a response."""
        self.connections.refuse(self, reason)

    def connection_lost(self) -> None:
        """Remove the closed connection."""
        self.connections.remove(self)

    def charge(self, seconds: float) -> None:
        """Count the processor time for this connection's input against its pod or address."""
        self.connections.charge(self, seconds)


@dataclass
class Connections:
    """All connections. `run` accepts them on `listening_socket`."""

    listening_socket: socket.socket
    context: ssl.SSLContext
    make_protocol: Callable[[AcceptedConnection], asyncio.Protocol]
    limits: ConnectionLimits
    refusals: RefusalCounter
    cpu: CpuBudgets
    # ordered sets: the oldest connection is first
    _clients: dict[AcceptedConnection, None] = field(default_factory=dict)
    _pods: dict[str, dict[AcceptedConnection, None]] = field(default_factory=dict)
    _namespaces: dict[str, dict[AcceptedConnection, None]] = field(default_factory=dict)
    _pod_counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._handshakes: HandshakeQueue[AcceptedConnection] = HandshakeQueue(
            self.limits.handshakes, self.limits.handshakes_per_address, self.cpu
        )
        self._has_waiting = asyncio.Event()

    def __len__(self) -> int:
        return len(self._clients)

    def count_pods(self, namespace: str) -> float:
        """Return the number of connected pods of the namespace."""
        return float(self._pod_counts[namespace])

    async def run(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.listening_socket, self._accept)
        try:
            await self._start_handshakes()
        finally:
            loop.remove_reader(self.listening_socket)

    def close(self) -> None:
        """Close every connection."""
        for client in list(self._clients):
            self._close_connection(client)

    def authenticate(self, client: AcceptedConnection, pod: PodClaim) -> None:
        """Record that the connection belongs to the pod. If the pod has too many connections, close its oldest."""
        if client not in self._clients:
            return
        now = time.monotonic()
        if self.cpu.is_cut_off(pod.pod_uid, now):
            self.refuse(client, RefusalReason.TOO_BUSY)
            return
        if client.pod is None:
            # charge the processor time before authentication to the pod instead of its address
            self.cpu.charge_unauthenticated(client.address, -client.cpu_seconds, now)
            self.cpu.charge_accept(client.address, -client.accept_seconds, now)
            self.cpu.charge_pod(pod.namespace, pod.pod_uid, client.cpu_seconds + client.accept_seconds, now)
        self._remove_entries(client)
        if len(self._clients) >= self.limits.connections:
            largest = max(self._namespaces, key=lambda namespace: len(self._namespaces[namespace]))
            self.refuse(next(iter(self._namespaces[largest])), RefusalReason.TOO_MANY_CONNECTIONS)
        self._clients[client] = None
        client.pod = pod
        self._namespaces.setdefault(pod.namespace, {})[client] = None
        if pod.pod_uid not in self._pods:
            self._pod_counts[pod.namespace] += 1
        pod_connections = self._pods.setdefault(pod.pod_uid, {})
        pod_connections[client] = None
        if len(pod_connections) > self.limits.per_pod:
            self.refuse(next(iter(pod_connections)), RefusalReason.TOO_MANY_CONNECTIONS)

    def refuse(self, client: AcceptedConnection, reason: RefusalReason) -> None:
        """Close the connection and count the reason. May be called twice."""
        if client not in self._clients:
            return
        if client.pod is None:
            self.refusals.count(reason, client.address)
        else:
            self.refusals.count(reason, client.pod.pod_name, client.pod.namespace)
        self._close_connection(client)

    def remove(self, client: AcceptedConnection) -> None:
        """Remove a closed connection. May be called twice."""
        if client in self._clients:
            self._remove_entries(client)

    def charge(self, client: AcceptedConnection, seconds: float) -> None:
        """Record the connection's processor time. Close the connection if it has used too much."""
        now = time.monotonic()
        if client.pod is not None:
            self.cpu.charge_pod(client.pod.namespace, client.pod.pod_uid, seconds, now)
            if self.cpu.is_cut_off(client.pod.pod_uid, now):
                self.refuse(client, RefusalReason.TOO_BUSY)
            return
        client.cpu_seconds += seconds
        self.cpu.charge_unauthenticated(client.address, seconds, now)
        if client.cpu_seconds > AUTHENTICATION_CPU_SECONDS:
            self.refuse(client, RefusalReason.TOO_BUSY)

    def _accept(self) -> None:
        deadline = time.thread_time() + ACCEPT_CPU_SECONDS
        # stop at the deadline, because the queue may never become empty
        while (started_at := time.thread_time()) < deadline:
            try:
                connection, address = self.listening_socket.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError:
                # the process has no free file descriptor: connections wait in the kernel's queue
                loop = asyncio.get_running_loop()
                loop.remove_reader(self.listening_socket)
                loop.call_later(ACCEPT_RETRY_SECONDS, self._resume_accepting)
                return
            connection.setblocking(False)
            self._add(connection, str(address[0]), started_at)

    def _resume_accepting(self) -> None:
        if self.listening_socket.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self.listening_socket, self._accept)

    def _add(self, connection: socket.socket, address: str, started_at: float) -> None:
        now = time.monotonic()
        reason = self._find_refusal(address, now)
        if reason is not None:
            self.refusals.count(reason, address)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            connection.close()
            self.cpu.charge_accept(address, time.thread_time() - started_at, now)
            return
        client = AcceptedConnection(address, self, connection, now)
        self._clients[client] = None
        self._handshakes.add(client, address)
        loop = asyncio.get_running_loop()
        client.expiry = loop.call_later(self.limits.authentication_seconds, self.refuse, client, RefusalReason.SILENT)
        self._has_waiting.set()
        client.accept_seconds = time.thread_time() - started_at
        self.cpu.charge_accept(address, client.accept_seconds, now)

    def _find_refusal(self, address: str, now: float) -> RefusalReason | None:
        if self.cpu.is_address_cut_off(address, now):
            return RefusalReason.TOO_BUSY
        is_full = self._handshakes.count_connections(address) >= self.limits.unauthenticated_per_address
        return RefusalReason.TOO_MANY_CONNECTIONS if is_full or not self._make_space(address) else None

    def _make_space(self, address: str) -> bool:
        if len(self._handshakes) < self.limits.unauthenticated and len(self._clients) < self.limits.connections:
            return True
        oldest = self._handshakes.find_connection_to_close(address)
        if oldest is None:
            return False
        self.refuse(oldest, RefusalReason.TOO_MANY_CONNECTIONS)
        return True

    async def _start_handshakes(self) -> None:
        """Start handshakes in the queue's order, while enough processor time is left."""
        while True:
            await self._has_waiting.wait()
            now, started_at = time.monotonic(), time.thread_time()
            client = self._handshakes.take_next(now)
            if client is not None and _has_ended(client.connection):
                self.refuse(client, RefusalReason.BAD_HANDSHAKE)
                self.cpu.charge_accept(client.address, time.thread_time() - started_at, now)
                await asyncio.sleep(0)  # thousands of connections may have ended
            elif client is not None and now > client.accepted_at + self.limits.handshake_wait_seconds:
                # After a restart, all agents connect at once. Without this limit, each would give up in its handshake.
                self.refuse(client, RefusalReason.TOO_MANY_CONNECTIONS)
            elif client is not None:
                client.handshake = asyncio.create_task(self._handshake(client))
                await asyncio.sleep(0)
            elif self._handshakes.has_waiting:
                await asyncio.sleep(0.02)
            else:
                self._has_waiting.clear()

    async def _handshake(self, client: AcceptedConnection) -> None:
        loop = asyncio.get_running_loop()
        handshake_done = loop.create_future()
        try:
            protocol = TlsProtocol(
                self.context,
                self.make_protocol(client),
                handshake_done,
                handshake_seconds=self.limits.handshake_seconds,
                charge=client.charge,
                connection_lost=client.connection_lost,
            )
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, client.connection)
            client.transport = transport
            await handshake_done
        except OSError:
            # the client doesn't use TLS, doesn't trust the certificate, or has disconnected
            self.refusals.count(RefusalReason.BAD_HANDSHAKE, client.address)
            self.remove(client)

    def _close_connection(self, client: AcceptedConnection) -> None:
        self.remove(client)
        if client.handshake is not None:
            client.handshake.cancel()
        if client.transport is not None:
            client.transport.abort()
        elif client.handshake is None:
            client.connection.close()

    def _remove_entries(self, client: AcceptedConnection) -> None:
        del self._clients[client]
        if client.expiry is not None:
            client.expiry.cancel()
        if client.pod is None:
            self._handshakes.remove(client, client.address)
            return
        pod_connections = self._pods[client.pod.pod_uid]
        namespace_connections = self._namespaces[client.pod.namespace]
        del pod_connections[client], namespace_connections[client]
        if not pod_connections:
            del self._pods[client.pod.pod_uid]
            self._pod_counts[client.pod.namespace] -= 1
        if not namespace_connections:
            del self._namespaces[client.pod.namespace], self._pod_counts[client.pod.namespace]


def _has_ended(connection: socket.socket) -> bool:
    """Whether the client has closed the connection, which costs nothing to find out before the handshake."""
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True

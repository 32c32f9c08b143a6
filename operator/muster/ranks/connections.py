"""The collector's connections: their number, and the time that each gets to authenticate.

Strangers are connections that have not sent a known pod's token yet. They can't crowd out pods: their number is small,
also for each address, and their time is short. This module accepts connections itself, because asyncio's server doesn't
count them before the TLS handshake is done.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.ranks.cpu_shares import CpuShares
from muster.ranks.doorstep import Doorstep
from muster.ranks.refusal import Reason
from muster.ranks.refusals import Refusals
from muster.ranks.tls import TlsProtocol
from muster.ranks.tokens import PodClaim

ACCEPT_CPU_SECONDS = 0.002
"""Processor time for accepting before other tasks run: a flood of connections must not delay reports."""

ACCEPT_AGAIN_SECONDS = 0.1
"""The wait after the process ran out of descriptors."""

GREETING_CPU_SECONDS = 0.1
"""The limit for a stranger's processor time: no honest client needs as much before it sends its token."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: reset a refused connection, so that none lingers."""


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections, and for how long (seconds)."""

    connections: int = 30_000  # two for each of 10,000 agents, and a reserve
    strangers: int = 4_096  # a large job's agents connect at the same time
    strangers_per_address: int = 64
    greeted: int = 256  # strangers whose handshake has started; the others are only sockets
    greeted_per_address: int = 4
    per_pod: int = 4  # an agent has two, and two may be half-open
    greeting_seconds: float = 10.0  # from accept to the first valid token
    handshake_seconds: float = 5.0
    body_seconds: float = 10.0  # a report has a few KiB, 1 MiB at most


@dataclass(eq=False)
class Guest:
    """An accepted connection."""

    address: str
    hall: "Connections"
    connection: socket.socket
    expiry: asyncio.TimerHandle | None = None
    greeting: asyncio.Task[None] | None = None
    transport: asyncio.WriteTransport | None = None
    pod: PodClaim | None = None
    worked_seconds: float = 0.0  # processor time as a stranger

    def trust(self, pod: PodClaim) -> None:
        """The connection has sent a valid token of this pod, which belongs to a job."""
        if self.pod != pod:
            self.hall.trust(self, pod)

    def refuse(self, reason: Reason) -> None:
        """Close the connection without a response."""
        self.hall.refuse(self, reason)

    def connection_lost(self) -> None:
        """The connection has been closed."""
        self.hall.drop(self)

    def worked(self, seconds: float) -> None:
        """Charge the processor time for handling its input."""
        self.hall.charge(self, seconds)


@dataclass
class Connections:
    """Accepts connections on `listening` while `run` runs."""

    listening: socket.socket
    context: ssl.SSLContext
    make_protocol: Callable[[Guest], asyncio.Protocol]
    limits: ConnectionLimits
    refusals: Refusals
    cpu: CpuShares
    # dictionaries are ordered sets: the oldest comes first
    _guests: dict[Guest, None] = field(default_factory=dict)
    _pods: dict[str, dict[Guest, None]] = field(default_factory=dict)
    _namespaces: dict[str, dict[Guest, None]] = field(default_factory=dict)
    _pods_of: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._doorstep: Doorstep[Guest] = Doorstep(self.limits.greeted, self.limits.greeted_per_address, self.cpu)
        self._someone_waits = asyncio.Event()

    def __len__(self) -> int:
        return len(self._guests)

    def pods_of(self, namespace: str) -> float:
        """The number of connected pods of the namespace."""
        return float(self._pods_of[namespace])

    async def run(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.listening, self._accept)
        try:
            await self._greet_all()
        finally:
            loop.remove_reader(self.listening)

    def close(self) -> None:
        """Close every connection."""
        for guest in list(self._guests):
            self._evict(guest)

    def trust(self, guest: Guest, pod: PodClaim) -> None:
        """Count the connection as the pod's; a pod with too many connections loses its oldest."""
        if guest not in self._guests:
            return
        now = time.monotonic()
        if self.cpu.is_cut_off(pod.pod_uid, now):
            self.refuse(guest, Reason.TOO_BUSY)
            return
        if guest.pod is None:
            # charge the pod for the time before the token, instead of its address
            self.cpu.charge_stranger(guest.address, -guest.worked_seconds, now)
            self.cpu.charge_pod(pod.namespace, pod.pod_uid, guest.worked_seconds, now)
        self._forget(guest)
        if len(self._guests) >= self.limits.connections:
            largest = max(self._namespaces, key=lambda namespace: len(self._namespaces[namespace]))
            self.refuse(next(iter(self._namespaces[largest])), Reason.TOO_MANY_CONNECTIONS)
        self._guests[guest] = None
        guest.pod = pod
        self._namespaces.setdefault(pod.namespace, {})[guest] = None
        if pod.pod_uid not in self._pods:
            self._pods_of[pod.namespace] += 1
        own = self._pods.setdefault(pod.pod_uid, {})
        own[guest] = None
        if len(own) > self.limits.per_pod:
            self.refuse(next(iter(own)), Reason.TOO_MANY_CONNECTIONS)

    def refuse(self, guest: Guest, reason: Reason) -> None:
        """Close the connection and count the reason. May be called twice."""
        if guest not in self._guests:
            return
        if guest.pod is None:
            self.refusals.count(reason, guest.address)
        else:
            self.refusals.count(reason, guest.pod.pod_name, guest.pod.namespace)
        self._evict(guest)

    def drop(self, guest: Guest) -> None:
        """Remove a closed connection. May be called twice."""
        if guest in self._guests:
            self._forget(guest)

    def charge(self, guest: Guest, seconds: float) -> None:
        """Charge the connection for processor time; close it if it has used too much."""
        now = time.monotonic()
        if guest.pod is not None:
            self.cpu.charge_pod(guest.pod.namespace, guest.pod.pod_uid, seconds, now)
            if self.cpu.is_cut_off(guest.pod.pod_uid, now):
                self.refuse(guest, Reason.TOO_BUSY)
            return
        guest.worked_seconds += seconds
        self.cpu.charge_stranger(guest.address, seconds, now)
        if guest.worked_seconds > GREETING_CPU_SECONDS:
            self.refuse(guest, Reason.TOO_BUSY)

    def _accept(self) -> None:
        until = time.thread_time() + ACCEPT_CPU_SECONDS
        # accepting never waits while the kernel's queue is full: let other tasks run, too
        while time.thread_time() < until:
            try:
                connection, address = self.listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError:
                # out of descriptors: connections wait in the kernel's queue meanwhile
                loop = asyncio.get_running_loop()
                loop.remove_reader(self.listening)
                loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again)
                return
            connection.setblocking(False)
            self._welcome(connection, str(address[0]))

    def _accept_again(self) -> None:
        if self.listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self.listening, self._accept)

    def _welcome(self, connection: socket.socket, address: str) -> None:
        if self._doorstep.places(address) >= self.limits.strangers_per_address or not self._make_room(address):
            self.refusals.count(Reason.TOO_MANY_CONNECTIONS, address)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
            return
        guest = Guest(address, self, connection)
        self._guests[guest] = None
        self._doorstep.arrive(guest, address)
        loop = asyncio.get_running_loop()
        guest.expiry = loop.call_later(self.limits.greeting_seconds, self.refuse, guest, Reason.SILENT)
        self._someone_waits.set()

    def _make_room(self, address: str) -> bool:
        if len(self._doorstep) < self.limits.strangers and len(self._guests) < self.limits.connections:
            return True
        rival = self._doorstep.oldest_of_busiest(address)
        if rival is None:
            return False
        self.refuse(rival, Reason.TOO_MANY_CONNECTIONS)
        return True

    async def _greet_all(self) -> None:
        """Start handshakes, address by address, as processor time permits."""
        while True:
            await self._someone_waits.wait()
            guest = self._doorstep.next(time.monotonic())
            if guest is not None:
                guest.greeting = asyncio.create_task(self._greet(guest))
                await asyncio.sleep(0)
            elif self._doorstep.is_anyone_waiting:
                await asyncio.sleep(0.02)
            else:
                self._someone_waits.clear()

    async def _greet(self, guest: Guest) -> None:
        loop = asyncio.get_running_loop()
        established = loop.create_future()
        try:
            protocol = TlsProtocol(
                self.context,
                self.make_protocol(guest),
                established,
                handshake_seconds=self.limits.handshake_seconds,
                worked=guest.worked,
                connection_lost=guest.connection_lost,
            )
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, guest.connection)
            guest.transport = transport
            await established
        except OSError:
            # not TLS, no trust in our authority, or disconnected
            self.refusals.count(Reason.BAD_HANDSHAKE, guest.address)
            self.drop(guest)

    def _evict(self, guest: Guest) -> None:
        self.drop(guest)
        if guest.greeting is not None:
            guest.greeting.cancel()
        if guest.transport is not None:
            guest.transport.abort()
        elif guest.greeting is None:
            guest.connection.close()

    def _forget(self, guest: Guest) -> None:
        del self._guests[guest]
        if guest.expiry is not None:
            guest.expiry.cancel()
        if guest.pod is None:
            self._doorstep.leave(guest, guest.address)
            return
        own, all_of_namespace = self._pods[guest.pod.pod_uid], self._namespaces[guest.pod.namespace]
        del own[guest], all_of_namespace[guest]
        if not own:
            del self._pods[guest.pod.pod_uid]
            self._pods_of[guest.pod.namespace] -= 1
        if not all_of_namespace:
            del self._namespaces[guest.pod.namespace], self._pods_of[guest.pod.namespace]

"""The collector's open connections: how many there may be, and how long one may stay without saying who it is.

Strangers are connections that have not sent a known pod's token yet. They can't crowd out the pods: they have few
places, few for one address, and little time. Accepting is done here and not by asyncio's server, because that one
doesn't count connections before their TLS handshake is done.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.collector.door.cpu_shares import CpuShares
from muster.collector.door.doorstep import Doorstep
from muster.collector.door.refusal import Reason
from muster.collector.door.refusals import Refusals
from muster.collector.door.tls import TlsProtocol
from muster.collector.trust.tokens import PodClaim

ACCEPT_CPU_SECONDS = 0.002
"""Accepting goes on for so long before everybody else gets a turn: a flood of connections is not to delay reports."""

ACCEPT_AGAIN_SECONDS = 0.1
"""After the process ran out of descriptors."""

GREETING_CPU_SECONDS = 0.1
"""No honest connection needs as much before it has shown its token."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: who is refused costs no connection that waits for its end."""


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections, and for how long (seconds)."""

    connections: int = 30_000  # two for each of 10,000 agents, with room
    strangers: int = 4_096  # a large job's agents come all at once
    strangers_per_address: int = 64
    greeted: int = 256  # strangers whose handshake has begun; the others are no more than a socket
    greeted_per_address: int = 4
    per_pod: int = 4  # an agent has two, and may have lost two
    greeting_seconds: float = 10.0  # from the accepting to the first good token
    handshake_seconds: float = 5.0
    body_seconds: float = 10.0  # a report has a few KiB, 1 MiB at most


@dataclass(eq=False)
class Guest:
    """One accepted connection."""

    address: str
    hall: "Connections"
    connection: socket.socket
    expiry: asyncio.TimerHandle | None = None
    greeting: asyncio.Task[None] | None = None
    transport: asyncio.WriteTransport | None = None
    pod: PodClaim | None = None
    worked_seconds: float = 0.0  # processor time as a stranger

    def trust(self, pod: PodClaim) -> None:
        """The connection showed a good token of this pod, which is a job's."""
        if self.pod != pod:
            self.hall.trust(self, pod)

    def refuse(self, reason: Reason) -> None:
        """Close the connection without an answer."""
        self.hall.refuse(self, reason)

    def connection_lost(self) -> None:
        """The connection is closed."""
        self.hall.drop(self)

    def worked(self, seconds: float) -> None:
        """So much processor time went into what came in."""
        self.hall.charge(self, seconds)


@dataclass
class Connections:
    """Accepts connections on `listening` for as long as `run` runs."""

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
        """How many pods of the namespace are connected."""
        return float(self._pods_of[namespace])

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.listening, self._accept)
        try:
            await self._greet_all()
        finally:
            loop.remove_reader(self.listening)

    def close(self) -> None:
        """Drop every connection, whatever it is doing."""
        for guest in list(self._guests):
            self._evict(guest)

    def trust(self, guest: Guest, pod: PodClaim) -> None:
        """Count the guest among the pod's connections from now on; a pod that has too many loses its oldest."""
        if guest not in self._guests:
            return
        now = time.monotonic()
        if self.cpu.is_cut_off(pod.pod_uid, now):
            self.refuse(guest, Reason.TOO_BUSY)
            return
        if guest.pod is None:
            # what came before the token was the pod's, too: its address need not pay
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
        """Close the guest's connection. Again is no harm."""
        if guest not in self._guests:
            return
        if guest.pod is None:
            self.refusals.count(reason, guest.address)
        else:
            self.refusals.count(reason, guest.pod.pod_name, guest.pod.namespace)
        self._evict(guest)

    def drop(self, guest: Guest) -> None:
        """The guest's connection is closed. Again is no harm."""
        if guest in self._guests:
            self._forget(guest)

    def charge(self, guest: Guest, seconds: float) -> None:
        """The guest pays for processor time; who has none left for too long is shown out."""
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
        # accepting doesn't wait while the kernel's queue is full: everybody else has to get a turn too
        while time.thread_time() < until:
            try:
                connection, address = self.listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError:
                # out of descriptors: others wait in the kernel's queue meanwhile
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
        """Begin handshakes, one address after the other, as there is time for them."""
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
            # no TLS, no trust in the authority, or no more interest
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

"""The collector's open connections: how many there may be, and how long one may stay without saying who it is.

Strangers are connections that have not sent a good token yet. They can't crowd out the pods: they have few places, few
for one address, and little time. Accepting is done here and not by asyncio's server, because that one doesn't count
connections before their TLS handshake is done.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.ranks.refusal import Reason


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections, and for how long (seconds)."""

    connections: int = 30_000  # two for each of 10,000 agents, with room
    strangers: int = 4_096  # a large job's agents come all at once
    strangers_per_address: int = 128
    per_pod: int = 8
    greeting_seconds: float = 10.0  # from the accepting to the first good token
    handshake_seconds: float = 5.0
    body_seconds: float = 10.0  # a report has a few KiB, 1 MiB at most


@dataclass(eq=False)
class Guest:
    """One accepted connection."""

    address: str
    hall: "Connections"
    expiry: asyncio.TimerHandle | None = None
    greeting: asyncio.Task[None] | None = None
    transport: asyncio.BaseTransport | None = None
    pod_uid: str | None = None

    def gone(self) -> None:
        """The connection is closed."""
        self.hall.drop(self)

    def trust(self, pod_uid: str) -> None:
        """The connection showed a good token of this pod."""
        if self.pod_uid != pod_uid:
            self.hall.trust(self, pod_uid)


@dataclass
class Connections:
    """Accepts connections on `listening` for as long as `run` runs."""

    listening: socket.socket
    context: ssl.SSLContext
    make_protocol: Callable[[Guest], asyncio.Protocol]
    limits: ConnectionLimits
    refused: Counter[Reason]
    # dictionaries are ordered sets: the oldest comes first
    _guests: dict[Guest, None] = field(default_factory=dict)
    _strangers: dict[Guest, None] = field(default_factory=dict)
    _pods: dict[str, dict[Guest, None]] = field(default_factory=dict)
    _addresses: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._guests)

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self.listening)
            except OSError:
                # out of descriptors, or the client left already: others wait in the kernel's queue meanwhile
                await asyncio.sleep(0.1)
                continue
            self._welcome(connection, str(address[0]))
            # accepting doesn't wait while the kernel's queue is full: everybody else has to get a turn too
            await asyncio.sleep(0)

    def close(self) -> None:
        """Drop every connection, whatever it is doing."""
        for guest in list(self._guests):
            self._evict(guest)

    def trust(self, guest: Guest, pod_uid: str) -> None:
        """Count the guest among the pod's connections from now on; a pod that has too many loses its oldest."""
        if guest not in self._guests:
            return
        self._forget(guest)
        self._guests[guest] = None
        guest.pod_uid = pod_uid
        own = self._pods.setdefault(pod_uid, {})
        own[guest] = None
        if len(own) > self.limits.per_pod:
            self._refuse(next(iter(own)), Reason.TOO_MANY_CONNECTIONS)

    def drop(self, guest: Guest) -> None:
        """The guest's connection is closed. Again is no harm."""
        if guest in self._guests:
            self._forget(guest)

    def _welcome(self, connection: socket.socket, address: str) -> None:
        if self._addresses[address] >= self.limits.strangers_per_address or not self._make_room():
            self.refused[Reason.TOO_MANY_CONNECTIONS] += 1
            connection.close()
            return
        guest = Guest(address, self)
        self._guests[guest] = None
        self._strangers[guest] = None
        self._addresses[address] += 1
        loop = asyncio.get_running_loop()
        guest.expiry = loop.call_later(self.limits.greeting_seconds, self._refuse, guest, Reason.SILENT)
        guest.greeting = loop.create_task(self._greet(guest, connection))

    def _make_room(self) -> bool:
        full = len(self._guests) >= self.limits.connections
        if (full or len(self._strangers) >= self.limits.strangers) and self._strangers:
            self._refuse(next(iter(self._strangers)), Reason.TOO_MANY_CONNECTIONS)
            return True
        return not full

    async def _greet(self, guest: Guest, connection: socket.socket) -> None:
        try:
            guest.transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self.make_protocol(guest),
                connection,
                ssl=self.context,
                ssl_handshake_timeout=self.limits.handshake_seconds,
                ssl_shutdown_timeout=1.0,
            )
        except OSError:
            # no TLS, no trust in the authority, or no more interest
            self.refused[Reason.BAD_HANDSHAKE] += 1
            self.drop(guest)

    def _refuse(self, guest: Guest, reason: Reason) -> None:
        self.refused[reason] += 1
        self._evict(guest)

    def _evict(self, guest: Guest) -> None:
        self.drop(guest)
        if guest.greeting is not None:
            guest.greeting.cancel()
        if isinstance(guest.transport, asyncio.WriteTransport):
            guest.transport.abort()

    def _forget(self, guest: Guest) -> None:
        del self._guests[guest]
        if guest.expiry is not None:
            guest.expiry.cancel()
        if guest in self._strangers:
            del self._strangers[guest]
            self._addresses[guest.address] -= 1
            if not self._addresses[guest.address]:
                del self._addresses[guest.address]
        if guest.pod_uid is not None:
            own = self._pods[guest.pod_uid]
            del own[guest]
            if not own:
                del self._pods[guest.pod_uid]

"""`agent.pyz network-check`: measures the network between this node and its partners, and prints what it found.

A process of its own: it may block, burn a core and fail without the agent. It ends by itself in time.
"""

from __future__ import annotations

import hmac
import selectors
import socket
import struct
import sys
import threading
import time
from typing import Dict, List, Sequence

from muster_worker.contract import wire
from muster_worker.contract.schema import Peer
from muster_worker.network.check_figures import CHECK_SECONDS, Assignment, Measured, figures

STREAM_SECONDS = 1.0
"""How long data is sent to a target: several times what TCP takes to find its speed on a way of 100 ms."""

PINGS = 50
PING_SECONDS = 0.5
"""Round trips to a target: so many, or those of this time where they are slow. The fastest counts."""

RETRY_SECONDS = 0.1
"""Until the next try to connect: the target's check may begin later."""

CONNECT_SECONDS = 3.0
"""For a connection, and for its first word: a lost packet is sent again after 1 s."""

MAX_CONNECTIONS = 16
"""Of a node's sources there are two; whoever else finds the port gets nothing."""

_FRAME = 64
_PING, _STREAM = b"P" * _FRAME, b"S" * _FRAME
_HELLO = struct.Struct("!64sI")
_REPLY = struct.Struct("!Q")  # the bytes that came
_CHUNK = 1 << 20
_HANG_UP_AT_ONCE = struct.pack("ii", 1, 0)


def main(arguments: Sequence[str]) -> int:
    """Measure what the assignment, a JSON argument, says; print the figures as JSON."""
    assignment = wire.decode(Assignment, arguments[0].encode())
    until = time.monotonic() + CHECK_SECONDS
    receiver = Receiver(assignment, until)
    receiver.start()
    sent: Dict[int, Measured] = {}
    problems: List[str] = []
    for index, target in enumerate(assignment.targets):
        now = time.monotonic()
        # one that never answers leaves time for the next
        share = now + (until - now) / (len(assignment.targets) - index)
        try:
            sent[target.node] = measure(assignment, target, share)
        except OSError as error:
            problems.append(f"node {target.node} at {target.address} can't be measured: {error.strerror or error}")
    received = receiver.finish(until)
    silent = [node for node in assignment.sources if node not in received]
    sys.stdout.buffer.write(wire.encode(figures(sent, received, problems, silent)))
    sys.stdout.flush()
    return 0


class Receiver(threading.Thread):
    """Answers the sources: sends pings back, counts what comes, and tells the sender."""

    def __init__(self, assignment: Assignment, until: float) -> None:
        """Listen. Raises `OSError`."""
        super().__init__(daemon=True)
        self._assignment = assignment
        self._until = until
        self._received: Dict[int, float] = {}
        self._changed = threading.Condition()
        own = assignment.own
        self._listener = socket.socket(_family(own.address), socket.SOCK_STREAM)
        # the agent holds the port, as it does the rendezvous' (`port.py`)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((own.address, own.check_port or 0))
        self._listener.listen(MAX_CONNECTIONS)

    def run(self) -> None:
        """Take connections until the process ends."""
        taken = threading.BoundedSemaphore(MAX_CONNECTIONS)
        while True:
            connection, _ = self._listener.accept()
            if not taken.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection, taken), daemon=True).start()

    def finish(self, until: float) -> Dict[int, float]:
        """What came from each source, in Mbit/s, once all came or the time is over."""
        with self._changed:
            everybody = len(self._assignment.sources)
            self._changed.wait_for(lambda: len(self._received) == everybody, max(0.0, until - time.monotonic()))
            return dict(self._received)

    def _serve(self, connection: socket.socket, taken: threading.BoundedSemaphore) -> None:
        try:
            with connection:
                self._take(connection)
        except OSError:
            pass  # the source says what went wrong
        finally:
            taken.release()

    def _take(self, connection: socket.socket) -> None:
        _hurry(connection, min(self._until, time.monotonic() + CONNECT_SECONDS))
        key, node = _HELLO.unpack(_read(connection, _HELLO.size))
        is_known = hmac.compare_digest(key, self._assignment.key.encode())
        if not is_known or node not in self._assignment.sources:
            return
        _hurry(connection, self._until)
        while _read(connection, _FRAME) == _PING:
            connection.sendall(_PING)
        count = _count(connection, STREAM_SECONDS)
        connection.sendall(_REPLY.pack(count))
        _drain(connection, self._until)
        with self._changed:
            self._received[node] = _mbps(count)
            self._changed.notify_all()


def measure(assignment: Assignment, target: Peer, until: float) -> Measured:
    """The way to a target. Raises `OSError` when it doesn't answer in time."""
    with _connect(assignment.own, target, until) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # what a slow network has not taken yet is of no use to anybody
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HANG_UP_AT_ONCE)
        _hurry(connection, until)
        connection.sendall(_HELLO.pack(assignment.key.encode(), assignment.own.node))
        round_trip = _ping(connection)
        connection.sendall(_STREAM)
        _send(connection, STREAM_SECONDS)
        _hurry(connection, until)
        (count,) = _REPLY.unpack(_read(connection, _REPLY.size))
        return Measured(_mbps(count), round(round_trip * 1e6, 1))


def _connect(own: Peer, target: Peer, until: float) -> socket.socket:
    while True:
        left = until - time.monotonic()
        connection = socket.socket(_family(target.address), socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.01, min(CONNECT_SECONDS, left)))
            connection.bind((own.address, 0))
            connection.connect((target.address, target.check_port or 0))
        except OSError:
            connection.close()
            if time.monotonic() + RETRY_SECONDS >= until:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return connection


def _ping(connection: socket.socket) -> float:
    """The fastest round trip, in seconds."""
    until, best = time.monotonic() + PING_SECONDS, float("inf")
    for _ in range(PINGS):
        began = time.perf_counter()
        connection.sendall(_PING)
        _read(connection, _FRAME)
        best = min(best, time.perf_counter() - began)
        if time.monotonic() >= until:
            break
    return best


def _send(connection: socket.socket, seconds: float) -> None:
    """Send as much as goes through in so many seconds."""
    chunk, until = memoryview(bytes(_CHUNK)), time.monotonic() + seconds
    connection.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        while time.monotonic() < until:
            if selector.select(until - time.monotonic()):
                connection.send(chunk)


def _count(connection: socket.socket, seconds: float) -> int:
    """The bytes that come within so many seconds."""
    until = time.monotonic() + seconds
    buffer, count = bytearray(_CHUNK), 0
    while time.monotonic() < until:
        _hurry(connection, until)
        try:
            taken = connection.recv_into(buffer)
        except socket.timeout:
            break
        if not taken:
            raise ConnectionResetError("the other side hung up")
        count += taken
    return count


def _drain(connection: socket.socket, until: float) -> None:
    """Wait for the other side to hang up: a close with data unread could cost it our answer."""
    buffer = bytearray(_CHUNK)
    try:
        _hurry(connection, until)
        while connection.recv_into(buffer):
            _hurry(connection, until)
    except OSError:
        return


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionResetError("the other side hung up")
        data += more
    return data


def _hurry(connection: socket.socket, until: float) -> None:
    connection.settimeout(max(0.01, until - time.monotonic()))


def _mbps(count: int) -> float:
    return round(count * 8 / 1e6 / STREAM_SECONDS, 1)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET

"""`agent.pyz network-check`: measures the network between this node and its partners and prints the results.

It runs as a separate process, because it may block, use a whole core, or crash. It ends after a fixed time.
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
from muster_worker.network.check_results import CHECK_SECONDS, Assignment, Measurement, summarize

STREAM_SECONDS = 1.0
"""Duration of the data stream to a target: several times TCP's slow start at a round trip of 100 ms."""

PINGS = 50
PING_SECONDS = 0.5
"""Maximum number of round trips to a target, and their maximum duration together. The fastest round trip counts."""

RETRY_SECONDS = 0.1
"""Delay before connecting again: the target's check may start later."""

CONNECT_SECONDS = 3.0
"""Time limit for a connection and its hello: TCP retransmits a lost packet after 1 s."""

MAX_CONNECTIONS = 16
"""A node has only two sources. Other clients may connect, too."""

_FRAME = 64
_PING, _STREAM = b"P" * _FRAME, b"S" * _FRAME
_HELLO = struct.Struct("!64sI")
_REPLY = struct.Struct("!Q")  # the number of received bytes
_CHUNK = 1 << 20
_LINGER_ZERO = struct.pack("ii", 1, 0)


def main(arguments: Sequence[str]) -> int:
    """Measure the connections of an assignment (a JSON argument) and print the results as JSON."""
    assignment = wire.decode(Assignment, arguments[0].encode())
    deadline = time.monotonic() + CHECK_SECONDS
    receiver = Receiver(assignment, deadline)
    receiver.start()
    sent: Dict[int, Measurement] = {}
    problems: List[str] = []
    for index, target in enumerate(assignment.targets):
        now = time.monotonic()
        # Divide the time among the targets, so that a target that doesn't answer leaves time for the next one.
        target_deadline = now + (deadline - now) / (len(assignment.targets) - index)
        try:
            sent[target.node] = measure(assignment, target, target_deadline)
        except OSError as error:
            problems.append(f"node {target.node} at {target.address} can't be measured: {error.strerror or error}")
    received = receiver.finish(deadline)
    silent_nodes = [node for node in assignment.sources if node not in received]
    sys.stdout.buffer.write(wire.encode(summarize(sent, received, problems, silent_nodes)))
    sys.stdout.flush()
    return 0


class Receiver(threading.Thread):
    """Serves the sources: answers pings, counts the bytes of the stream, and sends the count back."""

    def __init__(self, assignment: Assignment, deadline: float) -> None:
        """Listen on the check's port. Raises `OSError`."""
        super().__init__(daemon=True)
        self._assignment = assignment
        self._deadline = deadline
        self._received: Dict[int, float] = {}
        self._changed = threading.Condition()
        own = assignment.own
        self._listener = socket.socket(_find_address_family(own.address), socket.SOCK_STREAM)
        # the agent also holds the port (`port.py`)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((own.address, own.check_port or 0))
        self._listener.listen(MAX_CONNECTIONS)

    def run(self) -> None:
        """Accept connections until the process ends."""
        slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        while True:
            connection, _ = self._listener.accept()
            if not slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection, slots), daemon=True).start()

    def finish(self, deadline: float) -> Dict[int, float]:
        """Wait until all sources have finished, or for `deadline`. Returns the rate from each source in Mbit/s."""
        with self._changed:
            source_count = len(self._assignment.sources)
            self._changed.wait_for(lambda: len(self._received) == source_count, max(0.0, deadline - time.monotonic()))
            return dict(self._received)

    def _serve(self, connection: socket.socket, slots: threading.BoundedSemaphore) -> None:
        try:
            with connection:
                self._measure_source(connection)
        except OSError:
            pass  # the source reports the error
        finally:
            slots.release()

    def _measure_source(self, connection: socket.socket) -> None:
        _set_deadline(connection, min(self._deadline, time.monotonic() + CONNECT_SECONDS))
        key, node = _HELLO.unpack(_read(connection, _HELLO.size))
        is_known = hmac.compare_digest(key, self._assignment.key.encode())
        if not is_known or node not in self._assignment.sources:
            return
        _set_deadline(connection, self._deadline)
        while _read(connection, _FRAME) == _PING:
            connection.sendall(_PING)
        count = _count_bytes(connection, STREAM_SECONDS)
        connection.sendall(_REPLY.pack(count))
        _drain(connection, self._deadline)
        with self._changed:
            self._received[node] = _compute_mbps(count)
            self._changed.notify_all()


def measure(assignment: Assignment, target: Peer, deadline: float) -> Measurement:
    """Measure the connection to a target. Raises `OSError` if it doesn't answer in time."""
    with _connect(assignment.own, target, deadline) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Discard unsent data when closing the connection.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        _set_deadline(connection, deadline)
        connection.sendall(_HELLO.pack(assignment.key.encode(), assignment.own.node))
        round_trip = _measure_round_trip(connection)
        connection.sendall(_STREAM)
        _send_stream(connection, STREAM_SECONDS)
        _set_deadline(connection, deadline)
        (count,) = _REPLY.unpack(_read(connection, _REPLY.size))
        return Measurement(_compute_mbps(count), round(round_trip * 1e6, 1))


def _connect(own_peer: Peer, target: Peer, deadline: float) -> socket.socket:
    while True:
        remaining = deadline - time.monotonic()
        connection = socket.socket(_find_address_family(target.address), socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.01, min(CONNECT_SECONDS, remaining)))
            connection.bind((own_peer.address, 0))
            connection.connect((target.address, target.check_port or 0))
        except OSError:
            connection.close()
            if time.monotonic() + RETRY_SECONDS >= deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return connection


def _measure_round_trip(connection: socket.socket) -> float:
    """Return the fastest round trip, in seconds."""
    deadline, best = time.monotonic() + PING_SECONDS, float("inf")
    for _ in range(PINGS):
        started = time.perf_counter()
        connection.sendall(_PING)
        _read(connection, _FRAME)
        best = min(best, time.perf_counter() - started)
        if time.monotonic() >= deadline:
            break
    return best


def _send_stream(connection: socket.socket, seconds: float) -> None:
    """Send as many bytes as possible within `seconds`."""
    chunk, deadline = memoryview(bytes(_CHUNK)), time.monotonic() + seconds
    connection.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        while time.monotonic() < deadline:
            if selector.select(deadline - time.monotonic()):
                connection.send(chunk)


def _count_bytes(connection: socket.socket, seconds: float) -> int:
    """Count the bytes received within `seconds`."""
    deadline = time.monotonic() + seconds
    buffer, count = bytearray(_CHUNK), 0
    while time.monotonic() < deadline:
        _set_deadline(connection, deadline)
        try:
            size = connection.recv_into(buffer)
        except socket.timeout:
            break
        if not size:
            raise ConnectionResetError("the other side hung up")
        count += size
    return count


def _drain(connection: socket.socket, deadline: float) -> None:
    """Read until the peer closes the connection: closing it with unread data could discard the reply."""
    buffer = bytearray(_CHUNK)
    try:
        _set_deadline(connection, deadline)
        while connection.recv_into(buffer):
            _set_deadline(connection, deadline)
    except OSError:
        return


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the other side hung up")
        data += chunk
    return data


def _set_deadline(connection: socket.socket, deadline: float) -> None:
    connection.settimeout(max(0.01, deadline - time.monotonic()))


def _compute_mbps(count: int) -> float:
    return round(count * 8 / 1e6 / STREAM_SECONDS, 1)


def _find_address_family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET

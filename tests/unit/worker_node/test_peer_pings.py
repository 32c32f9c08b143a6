"""Two agents that ask each other over UDP, on one machine."""

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from muster_worker.agent.fence import COLLECTOR_SILENT_SECONDS
from muster_worker.agent.peer_pings import FIRST_PING_INTERVAL_SECONDS, PING_INTERVAL_SECONDS, PeerPings
from muster_worker.contract.ping import NONCE_BYTES, PING_BYTES, Ping, PingKind, decode, encode
from muster_worker.contract.schema import Command, CommandKind, Peer
from support.clock import Clock

KEYS = {1: "11" * 32, 2: "22" * 32}
NONCE = b"n" * NONCE_BYTES


def never(_: str) -> None:
    raise AssertionError("the ranks have to stop")


def command(kind: str, attempt: int, *ports: int | None) -> Command:
    peers = tuple(Peer(node, "127.0.0.1", 29400, ping_port=port) for node, port in enumerate(ports))
    return Command(1, "uid", attempt, kind, peers, ping_key=KEYS[attempt])


@pytest.fixture
def asker() -> Iterator[socket.socket]:
    """Yield a socket that plays node 1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.settimeout(5.0)
        yield own


def ask(own: socket.socket, port: int, attempt: int, nonce: bytes = NONCE) -> Ping | None:
    """Ask node 0 about an attempt; None without an answer."""
    own.sendto(encode(Ping(PingKind.PING, 1, 0, nonce), bytes.fromhex(KEYS[attempt])), ("127.0.0.1", port))
    return decode(own.recv(PING_BYTES + 1), bytes.fromhex(KEYS[attempt]))


def started(stop: Callable[[str], None] = never, clock: Callable[[], float] = time.monotonic) -> tuple[PeerPings, int]:
    pings = PeerPings(0, 30.0, lambda: 0.0, stop, lambda _: None, monotonic=clock)
    assert pings.port is not None
    return pings, pings.port


def pass_time(own: socket.socket, clock: Clock, port: int, seconds: float) -> None:
    """Advance the clock, and wake the thread with a datagram that has no other effect."""
    clock.now += seconds
    own.sendto(b"", ("127.0.0.1", port))


def test_the_answer_tells_the_state_of_the_attempt(asker: socket.socket) -> None:
    pings, port = started()
    pings.begin_attempt(command(CommandKind.START, 1, port, None))
    assert ask(asker, port, 1) == Ping(PingKind.ALIVE, 0, 1, NONCE)
    pings.record_success(1)
    assert ask(asker, port, 1) == Ping(PingKind.SUCCEEDED, 0, 1, NONCE)
    pings.begin_attempt(command(CommandKind.START, 2, port, None))
    assert ask(asker, port, 1) == Ping(PingKind.ATTEMPT_ENDED, 0, 1, NONCE)
    assert ask(asker, port, 2) == Ping(PingKind.ALIVE, 0, 1, NONCE)
    pings.end_attempt(command(CommandKind.STOP, 2))
    assert ask(asker, port, 2) == Ping(PingKind.ATTEMPT_ENDED, 0, 1, NONCE)


def test_strangers_get_no_answer(asker: socket.socket) -> None:
    pings, port = started()
    pings.begin_attempt(command(CommandKind.START, 1, port, None))
    key = bytes.fromhex(KEYS[1])
    for datagram in (
        b"",
        b"x" * PING_BYTES,
        encode(Ping(PingKind.PING, 1, 0, NONCE), bytes(32)),
        encode(Ping(PingKind.PING, 1, 5, NONCE), key),
        encode(Ping(PingKind.ALIVE, 1, 0, NONCE), key),
        encode(Ping(PingKind.ATTEMPT_ENDED, 1, 0, NONCE), key),
    ):
        asker.sendto(datagram, ("127.0.0.1", port))
    # An answer to one of them would come before the answer to this one.
    nonce = b"m" * NONCE_BYTES
    assert ask(asker, port, 1, nonce) == Ping(PingKind.ALIVE, 0, 1, nonce)


def test_a_node_asks_its_peer_until_it_answers(asker: socket.socket) -> None:
    asker.bind(("127.0.0.1", 0))
    clock = Clock(100.0)
    pings, port = started(clock=clock)
    pings.begin_attempt(command(CommandKind.START, 1, port, asker.getsockname()[1]))
    asked = []
    for _ in range(2):
        pass_time(asker, clock, port, FIRST_PING_INTERVAL_SECONDS)
        asked.append(decode(asker.recv(PING_BYTES + 1), bytes.fromhex(KEYS[1])))
    assert all(ping is not None and (ping.kind, ping.sender, ping.receiver) == (PingKind.PING, 0, 1) for ping in asked)
    assert len({ping.nonce for ping in asked if ping is not None}) == len(asked)


def test_a_node_stops_if_its_peer_says_that_the_attempt_is_over(asker: socket.socket) -> None:
    asker.bind(("127.0.0.1", 0))
    stopped, reasons = threading.Event(), list[str]()

    def stop(reason: str) -> None:
        reasons.append(reason)
        stopped.set()

    clock = Clock(100.0)
    pings, port = started(stop, clock)
    pings.begin_attempt(command(CommandKind.START, 1, port, asker.getsockname()[1]))
    pass_time(asker, clock, port, PING_INTERVAL_SECONDS)
    datagram, source = asker.recvfrom(PING_BYTES + 1)
    question = decode(datagram, bytes.fromhex(KEYS[1]))
    assert question is not None
    asker.sendto(encode(Ping(PingKind.ATTEMPT_ENDED, 1, 0, question.nonce), bytes.fromhex(KEYS[1])), source)
    pass_time(asker, clock, port, COLLECTOR_SILENT_SECONDS)
    assert stopped.wait(60.0)
    assert reasons == ["another node of the job reports that the operator has ended this attempt"]


def test_without_a_fence_there_is_no_port() -> None:
    pings = PeerPings(0, 0.0, lambda: 0.0, never, lambda _: None)
    assert pings.port is None
    pings.begin_attempt(command(CommandKind.START, 1, None, None))

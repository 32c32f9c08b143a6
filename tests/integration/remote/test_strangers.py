"""Clients that are refused: other certificates, none, recorded data, slow, huge or invalid frames."""

import contextlib
import socket
import ssl
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.collector.trust.attempt_credentials import derive_credentials
from muster_worker.contract.schema import Credentials
from muster_worker.machine import processes
from muster_worker.remote import frames
from muster_worker.remote.remote_commands import MAX_PENDING_CONNECTIONS
from support.remote_rank_group import JOB, RemoteRankGroup
from support.searches import choose_example_count


def client(rank_group: RemoteRankGroup, credentials: Credentials | None) -> ssl.SSLSocket:
    """Return a TLS connection to node 1 with these credentials, by a client that trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if credentials is not None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(credentials.certificate + credentials.key)
            file.flush()
            context.load_cert_chain(file.name)
    connection = rank_group.connect_stranger()
    connection.setblocking(False)
    wrapped = context.wrap_socket(connection, do_handshake_on_connect=False)
    rank_group.connections.append(wrapped)

    def shaken() -> bool:
        try:
            wrapped.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        return True

    rank_group.turn_until(shaken)
    return wrapped


def is_cut_off(rank_group: RemoteRankGroup, connection: socket.socket) -> bool:
    """Whether node 1 closes the connection without an answer."""
    said = b""

    def closed() -> bool:
        nonlocal said
        try:
            data = connection.recv(4096)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        except OSError:
            return True
        said += data
        return not data

    rank_group.turn_until(closed)
    return said == b""


def runs(rank_group: RemoteRankGroup, connection: ssl.SSLSocket) -> bool:
    """Whether node 1 runs the connection's command."""
    with contextlib.suppress(OSError):
        connection.send(frames.encode(frames.RUN, f"touch {rank_group.folder}/ran".encode()))
    is_cut_off(rank_group, connection)
    return (rank_group.folder / "ran").exists()


def still_works(rank_group: RemoteRankGroup) -> bool:
    return rank_group.wait_for_exit(rank_group.call("algo-2", "exit 7")) == 7


def test_the_rank_groups_own_certificate_is_believed(rank_group: RemoteRankGroup) -> None:
    assert runs(rank_group, client(rank_group, rank_group.make_credentials()))


@pytest.mark.parametrize("who", ["nobody", "another job", "an older attempt", "another cluster"])
def test_other_certificates_are_not(rank_group: RemoteRankGroup, who: str) -> None:
    credentials = {
        "nobody": None,
        "another job": rank_group.make_credentials(job="7a1f0000-0000-4000-8000-000000000002"),
        "an older attempt": rank_group.make_credentials(attempt=0),
        "another cluster": derive_credentials(bytes(32), JOB, 1),
    }[who]
    assert not runs(rank_group, client(rank_group, credentials))
    assert still_works(rank_group)
    assert "was rejected" in rank_group.log() or credentials is None


def test_a_replayed_connection_is_refused(rank_group: RemoteRankGroup) -> None:
    """All bytes that a valid client once sent, to the same port."""
    recorded = bytearray()
    ours, theirs = socket.socketpair()
    stranger = rank_group.connect_stranger()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(rank_group.make_credentials().certificate + rank_group.make_credentials().key)
        file.flush()
        context.load_cert_chain(file.name)
    ours.setblocking(False)
    theirs.setblocking(False)
    stranger.setblocking(False)
    secure = context.wrap_socket(ours, do_handshake_on_connect=False)
    rank_group.connections += [secure, theirs]
    sent = False

    def pump() -> bool:
        nonlocal sent
        with contextlib.suppress(BlockingIOError):
            data = theirs.recv(65536)
            recorded.extend(data)
            stranger.send(data)
        with contextlib.suppress(BlockingIOError):
            theirs.send(stranger.recv(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            secure.do_handshake()
            if not sent:
                sent = True
                secure.send(frames.encode(frames.RUN, f"echo >> {rank_group.folder}/ran".encode()))
        # The shell creates the file before it writes into it.
        ran = rank_group.folder / "ran"
        return ran.exists() and ran.read_text() != ""

    rank_group.turn_until(pump)
    again = rank_group.connect_stranger()
    again.setblocking(False)
    again.send(bytes(recorded))
    rank_group.turn_until(
        lambda: not [command for command in rank_group.remote_commands[1]._incoming if command.is_pending]
    )
    assert (rank_group.folder / "ran").read_text() == "\n"
    assert still_works(rank_group)


def test_who_says_nothing_is_cut_off(rank_group: RemoteRankGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster_worker.remote.incoming_command.FIRST_FRAME_SECONDS", 0.5)
    silent, begun = rank_group.connect_stranger(), client(rank_group, rank_group.make_credentials())
    silent.setblocking(False)
    assert is_cut_off(rank_group, silent)
    assert is_cut_off(rank_group, begun)
    slow = client(rank_group, rank_group.make_credentials())
    request = frames.encode(frames.RUN, b"x" * 200)
    with contextlib.suppress(OSError):  # byte by byte, and never a complete frame
        for byte in request[:-1]:
            slow.send(bytes([byte]))
            rank_group.turn()
    assert is_cut_off(rank_group, slow)


def test_a_crowd_does_not_keep_the_rank_group_out(rank_group: RemoteRankGroup) -> None:
    crowd = [rank_group.connect_stranger() for _ in range(2 * MAX_PENDING_CONNECTIONS)]
    assert still_works(rank_group)
    assert len(rank_group.remote_commands[1]._incoming) <= MAX_PENDING_CONNECTIONS
    for connection in crowd:
        connection.close()


def test_a_crowd_from_elsewhere_does_not_push_out_a_peer_that_takes_its_time(rank_group: RemoteRankGroup) -> None:
    """Like node 0, which calls many nodes at once."""
    slow = client(rank_group, rank_group.make_credentials())
    for _ in range(2 * MAX_PENDING_CONNECTIONS):
        rank_group.connect_stranger("127.0.0.2")
        rank_group.turn()
    assert len(rank_group.remote_commands[1]._incoming) <= MAX_PENDING_CONNECTIONS
    assert runs(rank_group, slow)


@pytest.mark.parametrize(
    "frame",
    [
        b"r" + (1 << 31).to_bytes(4, "big"),  # huge
        b"r" + (frames.MAX_COMMAND_BYTES + 1).to_bytes(4, "big"),
        b"o\0\0\0\1x",  # frames that only the other side may send
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_ends_the_connection(rank_group: RemoteRankGroup, frame: bytes) -> None:
    connection = client(rank_group, rank_group.make_credentials())
    connection.send(frame)
    assert is_cut_off(rank_group, connection)
    assert still_works(rank_group)


def test_a_second_request_ends_what_the_first_started(rank_group: RemoteRankGroup) -> None:
    connection = client(rank_group, rank_group.make_credentials())
    request = frames.encode(frames.RUN, b"sleep 300")
    connection.send(request)
    rank_group.turn_until(lambda: bool(processes.find_by_environment(b"MUSTER_CALL=1.1")))
    connection.send(request)
    rank_group.turn_until(lambda: not processes.find_by_environment(b"MUSTER_CALL=1.1"), seconds=30)


@settings(
    max_examples=choose_example_count(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(junk=st.binary(min_size=1, max_size=2000), is_inside=st.booleans())
def test_junk_ends_its_connection_and_nothing_else(
    rank_group: RemoteRankGroup, junk: bytes, *, is_inside: bool
) -> None:
    """Instead of TLS, and inside it."""
    begun = processes.list_descendants()
    connection: socket.socket = (
        client(rank_group, rank_group.make_credentials()) if is_inside else rank_group.connect_stranger()
    )
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.send(b"\0" + junk)
    connection.close()
    rank_group.turn_until(lambda: not rank_group.remote_commands[1]._incoming)
    assert processes.list_descendants() == begun

"""Who may not call: other certificates, none, what was recorded, what is slow, huge or no frame at all."""

import contextlib
import socket
import ssl
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.ranks.gang_credentials import derive
from muster_worker import processes, remote_frames
from muster_worker.calls import MAX_STRANGERS
from muster_worker.contract import Credentials
from remote_gang import JOB, RemoteGang


def client(gang: RemoteGang, credentials: Credentials | None) -> ssl.SSLSocket:
    """A TLS connection to node 1 by somebody with these credentials, who believes everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if credentials is not None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(credentials.certificate + credentials.key)
            file.flush()
            context.load_cert_chain(file.name)
    connection = gang.stranger()
    connection.setblocking(False)
    wrapped = context.wrap_socket(connection, do_handshake_on_connect=False)
    gang.connections.append(wrapped)

    def shaken() -> bool:
        try:
            wrapped.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        return True

    gang.turn_until(shaken)
    return wrapped


def is_cut_off(gang: RemoteGang, connection: socket.socket) -> bool:
    """Whether node 1 closes the connection, without having said a word over it."""
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

    gang.turn_until(closed)
    return said == b""


def runs(gang: RemoteGang, connection: ssl.SSLSocket) -> bool:
    """Whether node 1 does what the connection wants."""
    with contextlib.suppress(OSError):
        connection.send(remote_frames.encode(remote_frames.RUN, f"touch {gang.folder}/ran".encode()))
    is_cut_off(gang, connection)
    return (gang.folder / "ran").exists()


def still_works(gang: RemoteGang) -> bool:
    return gang.ended(gang.call("algo-2", "exit 7")) == 7


def test_the_gangs_own_certificate_is_believed(gang: RemoteGang) -> None:
    assert runs(gang, client(gang, gang.credentials()))


@pytest.mark.parametrize("who", ["nobody", "another job", "an older attempt", "another cluster"])
def test_other_certificates_are_not(gang: RemoteGang, who: str) -> None:
    credentials = {
        "nobody": None,
        "another job": gang.credentials(job="7a1f0000-0000-4000-8000-000000000002"),
        "an older attempt": gang.credentials(attempt=0),
        "another cluster": derive(bytes(32), JOB, 1),
    }[who]
    assert not runs(gang, client(gang, credentials))
    assert still_works(gang)
    assert "was not believed" in gang.log() or credentials is None


def test_a_replayed_connection_is_refused(gang: RemoteGang) -> None:
    """All that a good client once sent, byte by byte, to the same port."""
    recorded = bytearray()
    ours, theirs = socket.socketpair()
    stranger = gang.stranger()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(gang.credentials().certificate + gang.credentials().key)
        file.flush()
        context.load_cert_chain(file.name)
    ours.setblocking(False)
    theirs.setblocking(False)
    stranger.setblocking(False)
    secure = context.wrap_socket(ours, do_handshake_on_connect=False)
    gang.connections += [secure, theirs]
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
                secure.send(remote_frames.encode(remote_frames.RUN, f"echo >> {gang.folder}/ran".encode()))
        return (gang.folder / "ran").exists()

    gang.turn_until(pump)
    again = gang.stranger()
    again.setblocking(False)
    again.send(bytes(recorded))
    gang.turn_until(lambda: not [call for call in gang.calls[1]._incoming if call.is_stranger])
    assert (gang.folder / "ran").read_text() == "\n"
    assert still_works(gang)


def test_who_says_nothing_is_cut_off(gang: RemoteGang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster_worker.incoming_call.FIRST_FRAME_SECONDS", 0.5)
    silent, begun = gang.stranger(), client(gang, gang.credentials())
    silent.setblocking(False)
    assert is_cut_off(gang, silent)
    assert is_cut_off(gang, begun)
    slow = client(gang, gang.credentials())
    request = remote_frames.encode(remote_frames.RUN, b"x" * 200)
    with contextlib.suppress(OSError):  # byte by byte, and never a whole frame
        for byte in request[:-1]:
            slow.send(bytes([byte]))
            gang.turn()
    assert is_cut_off(gang, slow)


def test_a_crowd_does_not_keep_the_gang_out(gang: RemoteGang) -> None:
    crowd = [gang.stranger() for _ in range(2 * MAX_STRANGERS)]
    assert still_works(gang)
    assert len(gang.calls[1]._incoming) <= MAX_STRANGERS
    for connection in crowd:
        connection.close()


def test_a_crowd_from_elsewhere_does_not_push_out_a_peer_that_takes_its_time(gang: RemoteGang) -> None:
    """As node 0 does, which calls many nodes at once."""
    slow = client(gang, gang.credentials())
    for _ in range(2 * MAX_STRANGERS):
        gang.stranger("127.0.0.2")
        gang.turn()
    assert len(gang.calls[1]._incoming) <= MAX_STRANGERS
    assert runs(gang, slow)


@pytest.mark.parametrize(
    "frame",
    [
        b"r" + (1 << 31).to_bytes(4, "big"),  # huge
        b"r" + (remote_frames.MAX_COMMAND_BYTES + 1).to_bytes(4, "big"),
        b"o\0\0\0\1x",  # what only the other side may send
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_ends_the_connection(gang: RemoteGang, frame: bytes) -> None:
    connection = client(gang, gang.credentials())
    connection.send(frame)
    assert is_cut_off(gang, connection)
    assert still_works(gang)


def test_a_second_request_ends_what_the_first_started(gang: RemoteGang) -> None:
    connection = client(gang, gang.credentials())
    request = remote_frames.encode(remote_frames.RUN, b"sleep 300")
    connection.send(request)
    gang.turn_until(lambda: bool(processes.marked(b"MUSTER_CALL=1.1")))
    connection.send(request)
    gang.turn_until(lambda: not processes.marked(b"MUSTER_CALL=1.1"), seconds=10)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=st.binary(min_size=1, max_size=2000), is_inside=st.booleans())
def test_junk_ends_its_connection_and_nothing_else(gang: RemoteGang, junk: bytes, *, is_inside: bool) -> None:
    """Instead of TLS, and inside it."""
    begun = processes.descendants()
    connection: socket.socket = client(gang, gang.credentials()) if is_inside else gang.stranger()
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.send(b"\0" + junk)
    connection.close()
    gang.turn_until(lambda: not gang.calls[1]._incoming)
    assert processes.descendants() == begun

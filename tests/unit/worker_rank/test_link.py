import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.schema import EndReason
from muster_worker.contract.wire import MalformedDocument
from muster_worker.rank import agent_connection, wrapper
from muster_worker.rank_group import link
from muster_worker.rank_group.link import EndedMessage, HelloMessage, RefusedMessage, StartedMessage, decode


class Pair:
    def __init__(self, folder: Path) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "s"))
        listener.listen(1)
        self.announcer = agent_connection.AgentConnection(str(folder / "s"))
        self.receiver = link.Receiver(listener.accept()[0])
        listener.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.announcer.close()
    pair.receiver.close()


HELLO: dict[str, str | float] = {"rank": 1, "local_rank": 0, "pid": 9, "progress": "/run/é", "role": "wrapper"}


def test_messages_and_descriptors_arrive(pair: Pair) -> None:
    assert pair.receiver.receive() == []
    reader, writer = os.pipe()
    pair.announcer.send("hello", HELLO, (reader, reader))
    pair.announcer.send("started", {"pid": 10, "at": 1.5})
    pair.announcer.send("ended", {"at": 2.0, "signal": 9})
    (hello,) = pair.receiver.receive()  # the kernel ends a read at descriptors
    started, ended = pair.receiver.receive()
    assert hello.message == HelloMessage(1, 0, 9, "/run/é", "wrapper")
    os.write(writer, b"out")
    assert os.read(hello.fds[0], 10) == b"out"
    assert (started.message, ended.message) == (StartedMessage(10, 1.5), EndedMessage(2.0, signal=9))
    assert not pair.receiver.is_closed
    for fd in (reader, writer, *hello.fds):
        assert not os.get_inheritable(fd)
        os.close(fd)


def test_the_end_of_the_stream(pair: Pair) -> None:
    pair.announcer.send("refused", {"reason": "CommandNotFound", "message": "m", "at": 1.0})
    pair.announcer.close()
    assert [incoming.message for incoming in pair.receiver.receive()] == [RefusedMessage("CommandNotFound", "m", 1.0)]
    assert pair.receiver.receive() == []
    assert pair.receiver.is_closed


@pytest.mark.parametrize(("role", "fds"), [("wrapper", 0), ("wrapper", 1), ("hook", 2)])
def test_a_hello_with_the_wrong_descriptors(pair: Pair, role: str, fds: int) -> None:
    pair.announcer.send("hello", {**HELLO, "role": role}, (0,) * fds)
    with pytest.raises(MalformedDocument, match="file descriptors"):
        pair.receiver.receive()


def test_a_message_without_an_end(pair: Pair) -> None:
    pair.announcer.send("hello", {"progress": "x" * (link.MAX_MESSAGE_BYTES + 1)})
    assert pair.receiver.receive() == []  # the maximum size of a message
    with pytest.raises(MalformedDocument, match="longer than"):
        pair.receiver.receive()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"{}", "exactly one message"),
        (b'{"started":{"pid":1,"at":1.0},"ended":{"at":1.0,"exit_code":0}}', "exactly one message"),
        (b'{"ended":{"at":1.0}}', "exactly one of exit_code and signal"),
        (b'{"ended":{"at":1.0,"exit_code":0,"signal":9}}', "exactly one of exit_code and signal"),
        (b'{"ended":{"at":1.0,"signal":9,"peak_bytes":-1}}', "peak_bytes: below 0"),
        (b'{"hello":{"rank":0,"local_rank":0,"pid":1,"progress":"","role":"x"}}', "wrapper, hook"),
        (b'{"started":{"pid":true,"at":1.0}}', "pid"),
        (b'{"started":{"pid":1,"at":NaN}}', "NaN"),
        (b'{"nosuch":{}}', "unknown field"),
    ],
)
def test_malformed_messages(line: bytes, words: str) -> None:
    with pytest.raises(MalformedDocument, match=words):
        decode(line)


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_what_a_rank_says_is_json(text: str, at: float) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        announcer = agent_connection.AgentConnection.__new__(agent_connection.AgentConnection)
        announcer._socket = ours
        announcer.send("refused", {"reason": "r", "message": text, "at": at})
        assert decode(theirs.recv(1 << 20)[:-1]) == RefusedMessage("r", text, at)


def test_the_wrapper_s_words_for_a_refusal_are_the_contract_s() -> None:
    assert wrapper.COMMAND_NOT_FOUND == EndReason.COMMAND_NOT_FOUND
    assert wrapper.COMMAND_NOT_EXECUTABLE == EndReason.COMMAND_NOT_EXECUTABLE

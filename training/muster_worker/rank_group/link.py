"""Messages from a rank's wrapper to the agent, and the agent's end of their unix socket.

A wrapper connects to `MUSTER_AGENT_SOCKET` and sends JSON messages, one per line: `{"hello": {...}}`, then `{"started":
...}`, then `{"ended": ...}`; or `{"refused": ...}` if the command can't be executed. Times are the machine's
`time.monotonic()`. A stream that ends without `ended` or `refused` means that the wrapper was killed.
`agent_connection.py` is the wrapper's end.
"""

from __future__ import annotations

import array
import os
import socket
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from muster_worker.contract import wire

MAX_MESSAGE_BYTES = 64 * 1024
"""A longer message raises `MalformedDocument`. The longest valid message is a refusal that contains PATH."""

MAX_FDS = 2
"""Number of file descriptors with a hello: the read ends of the rank's standard output and standard error."""


MAX_EXIT_CODE = 255
MAX_SIGNAL = 64
MAX_REASON_CHARS = 64


class Role:
    """The role of a hello's sender. In both roles it waits for the rank and reports how the rank ended."""

    WRAPPER = "wrapper"  # sends the read ends of the rank's output
    HOOK = "hook"  # another launcher started the rank and reads its output
    ALL = (WRAPPER, HOOK)


@dataclass(frozen=True)
class HelloMessage:
    """The first message of a connection. `pid` is the sender's. `progress` is the path of the rank's progress file.

    `world` and `local_world` are the world sizes in the process' environment; 0 if they are not set.
    """

    rank: int
    local_rank: int
    pid: int
    progress: str
    role: str
    world: int = 0
    local_world: int = 0


@dataclass(frozen=True)
class StartedMessage:
    """The command runs as process `pid`. `not_forked` is the reason why a fork server of the node did not fork it."""

    pid: int
    at: float
    not_forked: Optional[str] = None


@dataclass(frozen=True)
class EndedMessage:
    """The command's process has ended. Exactly one of `exit_code` and `signal` is set.

    `peak_bytes` is the maximum resident memory. It is set only if a signal ended the process.
    """

    at: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    peak_bytes: Optional[int] = None


@dataclass(frozen=True)
class RefusedMessage:
    """The command could not be executed. `reason` is an `EndReason`. The wrapper exits with 127, 126 or 65."""

    reason: str
    message: str
    at: float


Message = Union[HelloMessage, StartedMessage, EndedMessage, RefusedMessage]


@dataclass(frozen=True)
class _Envelope:
    hello: Optional[HelloMessage] = None
    started: Optional[StartedMessage] = None
    ended: Optional[EndedMessage] = None
    refused: Optional[RefusedMessage] = None


@dataclass(frozen=True)
class ReceivedMessage:
    """A message, and the descriptors that a wrapper's hello carries: (standard output, standard error)."""

    message: Message
    fds: Tuple[int, ...] = ()


def decode(line: bytes) -> Message:
    """Decode one message without its newline. Raises `wire.MalformedDocument`."""
    envelope = wire.decode(_Envelope, line)
    messages: List[Message] = [
        message
        for message in (envelope.hello, envelope.started, envelope.ended, envelope.refused)
        if message is not None
    ]
    if len(messages) != 1:
        raise wire.MalformedDocument(f"expected exactly one message on a line, found {len(messages)}")
    message = messages[0]
    if isinstance(message, HelloMessage) and message.role not in Role.ALL:
        raise wire.MalformedDocument(f"hello.role: expected one of {', '.join(Role.ALL)}")
    _validate(message)
    return message


def _validate(message: Message) -> None:
    # The collector rejects a node's whole report because of one invalid value.
    if isinstance(message, StartedMessage) and message.pid <= 0:
        raise wire.MalformedDocument("started.pid: below 1")
    if isinstance(message, RefusedMessage) and len(message.reason) > MAX_REASON_CHARS:
        raise wire.MalformedDocument(f"refused.reason: longer than {MAX_REASON_CHARS} characters")
    if not isinstance(message, EndedMessage):
        return
    if (message.exit_code is None) == (message.signal is None):
        raise wire.MalformedDocument("ended: expected exactly one of exit_code and signal")
    if message.exit_code is not None and not 0 <= message.exit_code <= MAX_EXIT_CODE:
        raise wire.MalformedDocument(f"ended.exit_code: expected 0 to {MAX_EXIT_CODE}")
    if message.peak_bytes is not None and message.peak_bytes < 0:
        raise wire.MalformedDocument("ended.peak_bytes: below 0")
    if message.signal is not None and not 1 <= message.signal <= MAX_SIGNAL:
        raise wire.MalformedDocument(f"ended.signal: expected 1 to {MAX_SIGNAL}")


class Receiver:
    """The agent's end of one connection. Call `receive` when the non-blocking socket is readable.

    `is_closed` is true after the end of the stream. The caller of `receive` owns the returned file descriptors.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.is_closed = False
        self._buffer = b""
        self._fds: List[int] = []

    def receive(self) -> List[ReceivedMessage]:
        """Read the available messages. After `wire.MalformedDocument`, close the connection."""
        try:
            data, fds = _receive_with_fds(self.socket)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:  # a reset also ends the stream
            self.is_closed = True
            return []
        self._keep_expected(fds)
        self.is_closed = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if max(map(len, [*lines, self._buffer])) > MAX_MESSAGE_BYTES:
            raise wire.MalformedDocument(f"a message is longer than {MAX_MESSAGE_BYTES} bytes")
        # Decode all lines before the first message takes the descriptors, so that after an error `close` can close
        # them.
        messages = [decode(line) for line in lines]
        return [self._take_descriptors(message) for message in messages]

    def close(self) -> None:
        """Close the socket and the file descriptors that no message has taken."""
        self.is_closed = True
        while self._fds:
            os.close(self._fds.pop())
        self.socket.close()

    def _keep_expected(self, fds: List[int]) -> None:
        free_slots = MAX_FDS - len(self._fds)
        self._fds.extend(fds[:free_slots])
        for fd in fds[free_slots:]:
            os.close(fd)

    def _take_descriptors(self, message: Message) -> ReceivedMessage:
        if not isinstance(message, HelloMessage):
            return ReceivedMessage(message)
        if message.role == Role.WRAPPER and len(self._fds) != MAX_FDS:
            raise wire.MalformedDocument(f"hello: expected {MAX_FDS} file descriptors, found {len(self._fds)}")
        if message.role == Role.HOOK and self._fds:
            raise wire.MalformedDocument(f"hello: expected no file descriptors, found {len(self._fds)}")
        fds, self._fds = tuple(self._fds), []
        return ReceivedMessage(message, fds)


def _receive_with_fds(connection: socket.socket) -> Tuple[bytes, List[int]]:
    # Accept some unexpected descriptors, which `_keep_expected` closes. The kernel closes those that don't fit.
    fds = array.array("i")
    free_slots = socket.CMSG_SPACE(2 * MAX_FDS * fds.itemsize)
    data, ancillary, _, _ = connection.recvmsg(MAX_MESSAGE_BYTES, free_slots, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)

"""Messages from a rank's wrapper to the agent, and the agent's end of their unix socket.

A wrapper connects to `MUSTER_AGENT_SOCKET` and sends JSON messages, one per line: `{"hello": {...}}`, then `{"started":
...}`, then `{"ended": ...}`; or `{"refused": ...}` if the command can't be executed. Times are the machine's
`time.monotonic()`. A stream that ends without `ended` or `refused` means that the wrapper was killed. `announce.py` is
the wrapper's end.
"""

from __future__ import annotations

import array
import os
import socket
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from muster_worker.contract import wire

MAX_MESSAGE_BYTES = 64 * 1024
"""A longer message is `Malformed`. The longest valid one is a refusal that contains PATH."""

MAX_FDS = 2
"""Number of file descriptors with a hello: the read ends of the rank's standard output and standard error."""


MAX_EXIT_CODE = 255
MAX_SIGNAL = 64
MAX_REASON_CHARS = 64


class Role:
    """The sender of a hello. Both kinds wait for the rank and report how it ended."""

    WRAPPER = "wrapper"  # sends the read ends of the rank's output
    HOOK = "hook"  # another launcher started the rank and reads its output
    ALL = (WRAPPER, HOOK)


@dataclass(frozen=True)
class Hello:
    """First message of a connection. `pid` is the sender's, `progress` the path of the rank's progress file.

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
class Started:
    """The command runs as process `pid`."""

    pid: int
    at: float


@dataclass(frozen=True)
class Ended:
    """The command's process has ended. Exactly one of `exit_code` and `signal` is set.

    `peak_bytes` is its maximum resident memory; set only if a signal ended it.
    """

    at: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    peak_bytes: Optional[int] = None


@dataclass(frozen=True)
class Refused:
    """The command couldn't be executed; `reason` is an `EndReason`. The wrapper exits with 127 or 126."""

    reason: str
    message: str
    at: float


Message = Union[Hello, Started, Ended, Refused]


@dataclass(frozen=True)
class _Envelope:
    hello: Optional[Hello] = None
    started: Optional[Started] = None
    ended: Optional[Ended] = None
    refused: Optional[Refused] = None


@dataclass(frozen=True)
class Incoming:
    """A message, and the descriptors that a wrapper's hello carries: (standard output, standard error)."""

    message: Message
    fds: Tuple[int, ...] = ()


def decode(line: bytes) -> Message:
    """Decode one message without its newline. Raises `wire.Malformed`."""
    envelope = wire.decode(_Envelope, line)
    messages: List[Message] = [
        message
        for message in (envelope.hello, envelope.started, envelope.ended, envelope.refused)
        if message is not None
    ]
    if len(messages) != 1:
        raise wire.Malformed(f"expected exactly one message on a line, found {len(messages)}")
    message = messages[0]
    if isinstance(message, Hello) and message.role not in Role.ALL:
        raise wire.Malformed(f"hello.role: expected one of {', '.join(Role.ALL)}")
    _validate(message)
    return message


def _validate(message: Message) -> None:
    # The collector would reject the node's whole report because of an invalid value.
    if isinstance(message, Started) and message.pid <= 0:
        raise wire.Malformed("started.pid: below 1")
    if isinstance(message, Refused) and len(message.reason) > MAX_REASON_CHARS:
        raise wire.Malformed(f"refused.reason: longer than {MAX_REASON_CHARS} characters")
    if not isinstance(message, Ended):
        return
    if (message.exit_code is None) == (message.signal is None):
        raise wire.Malformed("ended: expected exactly one of exit_code and signal")
    if message.exit_code is not None and not 0 <= message.exit_code <= MAX_EXIT_CODE:
        raise wire.Malformed(f"ended.exit_code: expected 0 to {MAX_EXIT_CODE}")
    if message.peak_bytes is not None and message.peak_bytes < 0:
        raise wire.Malformed("ended.peak_bytes: below 0")
    if message.signal is not None and not 1 <= message.signal <= MAX_SIGNAL:
        raise wire.Malformed(f"ended.signal: expected 1 to {MAX_SIGNAL}")


class Receiver:
    """The agent's end of one connection. Call `receive` when the non-blocking socket is readable.

    `closed` is true after the end of the stream. The caller of `receive` owns the file descriptors that it returns.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.closed = False
        self._buffer = b""
        self._fds: List[int] = []

    def receive(self) -> List[Incoming]:
        """Read the available messages. After `wire.Malformed`, close the connection."""
        try:
            data, fds = _receive_with_fds(self.socket)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:  # a reset is the end of the stream, too
            self.closed = True
            return []
        self._keep_allowed(fds)
        self.closed = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if max(map(len, [*lines, self._buffer])) > MAX_MESSAGE_BYTES:
            raise wire.Malformed(f"a message is longer than {MAX_MESSAGE_BYTES} bytes")
        # Decode all lines before the first message takes the descriptors: after an error `close` has to close them.
        messages = [decode(line) for line in lines]
        return [self._incoming(message) for message in messages]

    def close(self) -> None:
        """Close the socket and the file descriptors that no message has taken."""
        self.closed = True
        while self._fds:
            os.close(self._fds.pop())
        self.socket.close()

    def _keep_allowed(self, fds: List[int]) -> None:
        room = MAX_FDS - len(self._fds)
        self._fds.extend(fds[:room])
        for fd in fds[room:]:
            os.close(fd)

    def _incoming(self, message: Message) -> Incoming:
        if not isinstance(message, Hello):
            return Incoming(message)
        if message.role == Role.WRAPPER and len(self._fds) != MAX_FDS:
            raise wire.Malformed(f"hello: expected {MAX_FDS} file descriptors, found {len(self._fds)}")
        if message.role == Role.HOOK and self._fds:
            raise wire.Malformed(f"hello: expected no file descriptors, found {len(self._fds)}")
        fds, self._fds = tuple(self._fds), []
        return Incoming(message, fds)


def _receive_with_fds(connection: socket.socket) -> Tuple[bytes, List[int]]:
    # Leave room for extra descriptors: the kernel closes those that don't fit, and `_keep_allowed` the others.
    fds = array.array("i")
    room = socket.CMSG_SPACE(2 * MAX_FDS * fds.itemsize)
    data, ancillary, _, _ = connection.recvmsg(MAX_MESSAGE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)

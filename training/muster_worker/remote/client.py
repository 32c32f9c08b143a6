"""`remote [options] HOST COMMAND...`: what an mpirun calls instead of ssh. This node's agent runs COMMAND there.

It talks to its own agent only, through a unix socket; the agents talk to each other over TLS. Started once for each
daemon of an MPI world, so it imports next to nothing. Standard input is not passed on; output comes as it is written.
"""

from __future__ import annotations

import _socket  # what `socket` is made of
import os
import sys

from muster_worker.remote import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Sequence, Tuple

LOST_EXIT_CODE = 255
"""ssh(1): an error of its own, not of the command."""

# ssh(1): options that have a value, in the same word or in the next one
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"


def main(arguments: Sequence[str]) -> NoReturn:
    """Run a command on another node and end as it ended.

    `arguments` are this program's name, where its agent listens, and what ssh would be given.
    """
    try:
        agent = arguments[1]
        host, command = split(arguments[2:])
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(agent)
        connection.sendall(frames.encode(frames.RUN, os.fsencode(host) + b"\0" + os.fsencode(command)))
        code = _relay(connection)
    except (OSError, ValueError) as error:
        _complain(str(error))
        code = LOST_EXIT_CODE
    os._exit(code)


def split(arguments: Sequence[str]) -> Tuple[str, str]:
    """The host and the command of ssh's arguments. Raises `ValueError` without both."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if _takes_next(option) and rest:
            rest.pop(0)
    # like sshd, which hands its shell one line
    if len(rest) < 2:  # noqa: PLR2004 - a host and a command
        raise ValueError("usage: remote [options] HOST COMMAND...")
    return rest[0].rpartition("@")[2], " ".join(rest[1:])


def _takes_next(option: str) -> bool:
    for position, letter in enumerate(option[1:], 2):
        if letter in _WITH_VALUE:
            return position == len(option)
    return False


def _relay(connection: _socket.socket) -> int:
    reader = frames.Reader(frames.OUT, frames.ERR, frames.EXITED, frames.SIGNALLED, frames.REFUSED)
    while True:
        data = connection.recv(frames.MAX_PIECE_BYTES)
        if not data:
            raise ValueError(
                "the agents have lost each other, or this rank group is over: nobody knows how the command ended"
            )
        for kind, payload in reader.feed(data):
            if kind == frames.EXITED:
                return frames.number(payload, 255)
            if kind == frames.SIGNALLED:  # as a shell tells it
                return 128 + frames.number(payload, 64)
            if kind == frames.REFUSED:
                raise ValueError(payload.decode("utf-8", "replace"))
            _write(1 if kind == frames.OUT else 2, payload)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _complain(text: str) -> None:
    sys.stderr.write(f"muster: {text}\n")

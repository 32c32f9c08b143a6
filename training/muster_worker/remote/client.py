"""`remote [options] HOST COMMAND...` replaces ssh for mpirun. The agents run COMMAND on another node.

The program connects to its node's agent over a Unix socket. Agents connect to each other with TLS. mpirun starts the
program once per daemon, so it imports very little. It ignores standard input and relays output at once.
"""

from __future__ import annotations

import _socket  # the C module of `socket`
import os
import sys

from muster_worker.remote import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Sequence, Tuple

LOST_EXIT_CODE = 255
"""ssh(1): the exit code of ssh's own errors."""

# ssh(1): options with a value, in the same argument or the next one
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"


def main(arguments: Sequence[str]) -> NoReturn:
    """Run a command on another node and exit with its exit code.

    `arguments` are this program's name, the path of the agent's socket, and the arguments for ssh.
    """
    try:
        agent = arguments[1]
        host, command = split_arguments(arguments[2:])
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(agent)
        connection.sendall(frames.encode(frames.RUN, os.fsencode(host) + b"\0" + os.fsencode(command)))
        code = _relay(connection)
    except (OSError, ValueError) as error:
        _print_error(str(error))
        code = LOST_EXIT_CODE
    os._exit(code)


def split_arguments(arguments: Sequence[str]) -> Tuple[str, str]:
    """Return host and command from ssh's arguments. Raises `ValueError` if one is missing."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if _takes_next_argument(option) and rest:
            rest.pop(0)
    # Like sshd, join the arguments to one line for the shell.
    if len(rest) < 2:  # noqa: PLR2004 - host and command
        raise ValueError("usage: remote [options] HOST COMMAND...")
    return rest[0].rpartition("@")[2], " ".join(rest[1:])


def _takes_next_argument(option: str) -> bool:
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
                "the connection between the agents was lost or the rank group has ended: the exit code is unknown"
            )
        for kind, payload in reader.feed(data):
            if kind == frames.EXITED:
                return frames.decode_number(payload, 255)
            if kind == frames.SIGNALLED:  # like a shell
                return 128 + frames.decode_number(payload, 64)
            if kind == frames.REFUSED:
                raise ValueError(payload.decode("utf-8", "replace"))
            _write(1 if kind == frames.OUT else 2, payload)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _print_error(text: str) -> None:
    sys.stderr.write(f"muster: {text}\n")

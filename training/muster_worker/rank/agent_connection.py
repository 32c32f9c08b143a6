"""The rank's end of the connection to the agent. `link.py` is the agent's end and documents the messages.

Every rank loads this module before its command starts. It imports neither dataclasses, typing, json nor socket, which
would take three times as long.
"""

from __future__ import annotations

import _socket  # the C module of `socket`
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence, Union

SEND_TIMEOUT_SECONDS = 10
"""Time limit for connecting and sending. If the agent doesn't respond, the rank starts anyway."""


class AgentConnection:
    """A connection to the agent."""

    def __init__(self, path: str) -> None:
        """Connect to the agent's socket. Raises `OSError`."""
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("@ll", SEND_TIMEOUT_SECONDS, 0))
        self._socket.connect(path)

    def send(self, message: str, fields: Mapping[str, Union[str, float]], fds: Sequence[int] = ()) -> None:
        """Send one message (`hello`, `started`, `ended`, `refused`), with file descriptors. Raises `OSError`."""
        pairs = ",".join(f"{_quote(name)}:{_encode_value(value)}" for name, value in fields.items())
        data = f"{{{_quote(message)}:{{{pairs}}}}}\n".encode("ascii")
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
        sent_bytes = self._socket.sendmsg([data], ancillary)
        self._socket.sendall(data[sent_bytes:])

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _encode_value(value: Union[str, float]) -> str:
    return _quote(value) if isinstance(value, str) else repr(value)


def _quote(text: str) -> str:
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if " " <= character <= "~" and character not in '"\\':
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))

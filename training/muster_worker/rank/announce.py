"""The rank's end of the link to the agent. `link.py` is the agent's end and says what the messages mean.

Apart from it because it runs before the training command starts, in every rank: with dataclasses, typing, json and
socket it would take three times as long to load.
"""

from __future__ import annotations

import _socket  # what `socket` is made of
import array
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence, Union

SEND_TIMEOUT_SECONDS = 10
"""How long an agent that doesn't answer may delay a rank: connecting waits while the listener's queue is full."""


class Announcer:
    """A connection to the agent."""

    def __init__(self, path: str) -> None:
        """Connect to the agent's socket. Raises `OSError`."""
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("@ll", SEND_TIMEOUT_SECONDS, 0))
        self._socket.connect(path)

    def say(self, message: str, fields: Mapping[str, Union[str, float]], fds: Sequence[int] = ()) -> None:
        """Send one message (`hello`, `started`, `ended`, `refused`), with file descriptors. Raises `OSError`."""
        pairs = ",".join(f"{_quoted(name)}:{_json(value)}" for name, value in fields.items())
        data = f"{{{_quoted(message)}:{{{pairs}}}}}\n".encode("ascii")
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self._socket.sendmsg([data], rights)
        self._socket.sendall(data[sent:])

    def close(self) -> None:
        """End the stream."""
        self._socket.close()


def _json(value: Union[str, float]) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if " " <= character <= "~" and character not in '"\\':
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))

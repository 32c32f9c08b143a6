"""The rank's end of the link to the agent. `link.py` is the agent's end and says what the messages mean.

Apart from it because it runs before the training command starts: without dataclasses and typing it loads in a third of
the time.
"""

from __future__ import annotations

import array
import json
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional, Sequence, Union

SEND_TIMEOUT_SECONDS = 10
"""How long an agent that doesn't answer may delay a rank: connecting waits while the listener's queue is full."""


class Announcer:
    """A connection to the agent. A lost agent is no reason to disturb the training: `say` then does nothing."""

    def __init__(self, path: str) -> None:
        """Connect to the agent's socket. Raises `OSError`."""
        self._socket: Optional[socket.socket] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", SEND_TIMEOUT_SECONDS, 0))
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def say(self, message: str, fields: Mapping[str, Union[str, int, float]], fds: Sequence[int] = ()) -> None:
        """Send one message (`hello`, `started`, `ended`, `refused`), with file descriptors."""
        if self._socket is None:
            return
        data = json.dumps({message: fields}).encode("ascii") + b"\n"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            sent = self._socket.sendmsg([data], rights)
            self._socket.sendall(data[sent:])
        except OSError:
            self._socket.close()
            self._socket = None

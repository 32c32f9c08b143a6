"""A request to the node's sync container. Request and answer are one line of JSON each."""

from __future__ import annotations

import json
import selectors
import socket
import time
from typing import List, Optional

from muster_worker.agent.state import Event
from muster_worker.contract.schema import AgentProblem

REFRESH = "refresh"
"""Download the files that other nodes have uploaded, before the ranks start."""

FINISH = "finish"
"""Upload all files of the ranks, after the ranks have ended."""

RETRY_SECONDS = 0.5
"""Delay before connecting again."""

LOST_SECONDS = 60.0
"""Kubernetes restarts a failed sync container within this time."""

_MAX_ANSWER_BYTES = 16 * 1024


class SyncRequest:
    """One request. There is no time limit for the answer. Times are on the node's monotonic clock."""

    def __init__(self, path: str, request: str, selector: selectors.BaseSelector, now: float) -> None:
        self._path = path
        self._request = request
        self._selector = selector
        self._retry_at: Optional[float] = now
        self._lost_since = now
        self._socket: Optional[socket.socket] = None
        self._received_bytes = b""
        self.is_answered = False
        self.problem: Optional[AgentProblem] = None

    @property
    def next_poll_at(self) -> Optional[float]:
        """When to call `poll` next, on the node's clock; None while waiting for the answer."""
        return 0.0 if self.is_answered else self._retry_at

    def poll(self, now: float) -> None:
        """Connect again if the retry is due."""
        if self.is_answered or self._retry_at is None or now < self._retry_at:
            return
        if now - self._lost_since > LOST_SECONDS:
            message = f"the sync server has not answered for {LOST_SECONDS:.0f} s; see its container's log"
            self._complete(AgentProblem("SyncLost", message))
            return
        self._retry_at = now + RETRY_SECONDS
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            connection.connect(self._path)
            # a line this short always fits the socket's buffer
            connection.sendall(json.dumps({"ask": self._request}).encode("ascii") + b"\n")
        except OSError:
            connection.close()
            return
        self._socket, self._retry_at, self._received_bytes = connection, None, b""
        self._selector.register(connection, selectors.EVENT_READ, self._receive)

    def close(self) -> None:
        """Stop waiting and close the socket."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _receive(self) -> List[Event]:
        if self._socket is None:
            return []
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self._received_bytes += data
        if data and b"\n" not in self._received_bytes and len(self._received_bytes) <= _MAX_ANSWER_BYTES:
            return []
        self.close()
        try:
            self._complete(_read_problem(self._received_bytes))
        except ValueError:
            # The sync container failed before it answered. Send the request again; repeating it is safe.
            self._lost_since = self._retry_at = time.monotonic()
        return []

    def _complete(self, problem: Optional[AgentProblem]) -> None:
        self.close()
        self.is_answered, self.problem = True, problem


def _read_problem(answer: bytes) -> Optional[AgentProblem]:
    """Return the problem in the answer; None for success. Raises `ValueError` if the answer is malformed."""
    value = json.loads(answer.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    reason, message = value.get("reason"), value.get("message")
    return AgentProblem(str(reason), str(message)) if reason is not None else None

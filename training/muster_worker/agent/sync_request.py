"""A request to the node's sync container and its answer: one line of JSON each way."""

from __future__ import annotations

import json
import selectors
import socket
import time
from typing import List, Optional

from muster_worker.agent.state import Event
from muster_worker.contract.schema import AgentProblem

REFRESH = "refresh"
"""Fetch what other nodes have written: ranks are about to start."""

FINISH = "finish"
"""Upload all files that the ranks have left: none of them runs."""

RETRY_SECONDS = 0.5
"""Until the next try when nobody listens."""

LOST_SECONDS = 60.0
"""A sync that fell is started again within that time."""

_MAX_ANSWER_BYTES = 16 * 1024


class SyncRequest:
    """One request, `answered` in the end. It takes as long as it takes. Times are the node's monotonic clock."""

    def __init__(self, path: str, request: str, selector: selectors.BaseSelector, now: float) -> None:
        self._path = path
        self._request = request
        self._selector = selector
        self._retry_at: Optional[float] = now
        self._lost_since = now
        self._socket: Optional[socket.socket] = None
        self._heard = b""
        self.answered = False
        self.problem: Optional[AgentProblem] = None

    @property
    def next_step_at(self) -> Optional[float]:
        """When `step` has something to do, on the node's clock; None while only the answer matters."""
        return 0.0 if self.answered else self._retry_at

    def step(self, now: float) -> None:
        """Try again, when it is time for that."""
        if self.answered or self._retry_at is None or now < self._retry_at:
            return
        if now - self._lost_since > LOST_SECONDS:
            why = f"the sync server has not answered for {LOST_SECONDS:.0f} s; its container's log may tell why"
            self._answer(AgentProblem("SyncLost", why))
            return
        self._retry_at = now + RETRY_SECONDS
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            one.connect(self._path)
            # a line this short always fits
            one.sendall(json.dumps({"ask": self._request}).encode("ascii") + b"\n")
        except OSError:
            one.close()
            return
        self._socket, self._retry_at, self._heard = one, None, b""
        self._selector.register(one, selectors.EVENT_READ, self._hear)

    def close(self) -> None:
        """Wait no longer."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _hear(self) -> List[Event]:
        if self._socket is None:
            return []
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self._heard += data
        if data and b"\n" not in self._heard and len(self._heard) <= _MAX_ANSWER_BYTES:
            return []
        self.close()
        try:
            self._answer(_problem(self._heard))
        except ValueError:
            # it fell in the middle of its work, which is none that is lost
            self._lost_since = self._retry_at = time.monotonic()
        return []

    def _answer(self, problem: Optional[AgentProblem]) -> None:
        self.close()
        self.answered, self.problem = True, problem


def _problem(answer: bytes) -> Optional[AgentProblem]:
    """What went wrong, if anything did. Raises `ValueError` for what is no answer."""
    value = json.loads(answer.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    reason, message = value.get("reason"), value.get("message")
    return AgentProblem(str(reason), str(message)) if reason is not None else None

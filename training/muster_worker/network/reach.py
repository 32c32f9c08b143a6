"""Proves, before anything is started, that this node reaches another one: a TCP connection, accepted or refused."""

from __future__ import annotations

import errno
import os
import selectors
import socket
from typing import List, Optional

from muster_worker.agent.state import Event
from muster_worker.contract.schema import AgentProblem, Peer

REACH_SECONDS = 10.0
"""How long it is tried. A lost packet is sent again after 1, 3 and 7 s; rules for a new pod take seconds to settle."""

RETRY_SECONDS = 0.5
"""Until the next try when the network says at once that there is no way."""

_REACHED = (0, errno.ECONNREFUSED, errno.ECONNRESET)
"""Somebody answered, whatever they said."""


class Reach:
    """One node's way to another, `reached` or with a `problem` in the end. Times are the node's monotonic clock."""

    def __init__(self, own: Peer, other: Peer, selector: selectors.BaseSelector, now: float) -> None:
        self._own = own
        self._other = other
        self._selector = selector
        self._deadline = now + REACH_SECONDS
        self._retry_at: Optional[float] = now
        self._socket: Optional[socket.socket] = None
        self._why = "no answer"
        self.reached = False
        self.problem: Optional[AgentProblem] = None

    @property
    def next_step_at(self) -> float:
        """When `step` has something to do, on the node's clock."""
        if self.reached or self.problem is not None:
            return 0.0
        return self._deadline if self._retry_at is None else min(self._retry_at, self._deadline)

    def step(self, now: float) -> None:
        """What is due now: another try, or the end of all tries."""
        if self.reached or self.problem is not None:
            return
        if now >= self._deadline:
            self.close()
            self.problem = AgentProblem("PeerUnreachable", self._sentence())
        elif self._retry_at is not None and now >= self._retry_at:
            self._try(now)

    def close(self) -> None:
        """Give up, without a word."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            # in the ordinary way: torch's store warns of a connection that is reset
            self._socket.close()
            self._socket = None

    def _try(self, now: float) -> None:
        family = socket.AF_INET6 if ":" in self._other.address else socket.AF_INET
        probe = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            probe.bind((self._own.address, 0))
            code = probe.connect_ex((self._other.address, self._other.port))
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code == errno.EINPROGRESS:
            self._socket, self._retry_at = probe, None
            self._selector.register(probe, selectors.EVENT_WRITE, lambda: self._answered(now))
            return
        probe.close()
        self._take(code, now)

    def _answered(self, now: float) -> List[Event]:
        if self._socket is not None:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.close()
            self._take(code, now)
        return []

    def _take(self, code: int, now: float) -> None:
        if code in _REACHED:
            self.reached = True
        else:
            self._why = os.strerror(code)
            self._retry_at = now + RETRY_SECONDS

    def _sentence(self) -> str:
        return (
            f"node {self._other.node} at {_place(self._other)} can't be reached from {_place(self._own)}: "
            f"{self._why} for {REACH_SECONDS:.0f} s; look at routes, firewalls and NetworkPolicies between the nodes, "
            "or set spec.network.interface"
        )


def _place(peer: Peer) -> str:
    return f"{peer.address} ({peer.interface})" if peer.interface else peer.address

"""Checks before the ranks start that this node reaches a peer, by a TCP connection."""

from __future__ import annotations

import errno
import os
import selectors
import socket
from typing import List, Optional

from muster_worker.agent.state import Event
from muster_worker.contract.schema import AgentProblem, Peer

REACH_SECONDS = 10.0
"""Time limit. TCP retransmits after 1, 3 and 7 s, and network rules for a new pod take seconds to apply."""

RETRY_SECONDS = 0.5
"""Delay after an immediate error."""

_REACHED = (0, errno.ECONNREFUSED, errno.ECONNRESET)
"""Results that prove that the peer is reachable: a refused connection is an answer, too."""


class ReachabilityCheck:
    """The check of one peer. At its end `is_reachable` or `problem` is set. Times are on the node's monotonic clock."""

    def __init__(self, source: Peer, target: Peer, selector: selectors.BaseSelector, now: float) -> None:
        self._source = source
        self._target = target
        self._selector = selector
        self._deadline = now + REACH_SECONDS
        self._retry_at: Optional[float] = now
        self._socket: Optional[socket.socket] = None
        self._last_error = "no answer"
        self.is_reachable = False
        self.problem: Optional[AgentProblem] = None

    @property
    def next_poll_at(self) -> float:
        """When to call `poll` next, on the node's clock."""
        if self.is_reachable or self.problem is not None:
            return 0.0
        return self._deadline if self._retry_at is None else min(self._retry_at, self._deadline)

    def poll(self, now: float) -> None:
        """Connect again if the retry is due, or set the problem after the deadline."""
        if self.is_reachable or self.problem is not None:
            return
        if now >= self._deadline:
            self.close()
            self.problem = AgentProblem("PeerUnreachable", self._describe_problem())
        elif self._retry_at is not None and now >= self._retry_at:
            self._try(now)

    def close(self) -> None:
        """Stop the check."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            # Close the connection without a reset: torch's store logs a warning about reset connections.
            self._socket.close()
            self._socket = None

    def _try(self, now: float) -> None:
        family = socket.AF_INET6 if ":" in self._target.address else socket.AF_INET
        probe = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            probe.bind((self._source.address, 0))
            code = probe.connect_ex((self._target.address, self._target.port))
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code == errno.EINPROGRESS:
            self._socket, self._retry_at = probe, None
            self._selector.register(probe, selectors.EVENT_WRITE, lambda: self._on_connected(now))
            return
        probe.close()
        self._handle_result(code, now)

    def _on_connected(self, now: float) -> List[Event]:
        if self._socket is not None:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.close()
            self._handle_result(code, now)
        return []

    def _handle_result(self, code: int, now: float) -> None:
        if code in _REACHED:
            self.is_reachable = True
        else:
            self._last_error = os.strerror(code)
            self._retry_at = now + RETRY_SECONDS

    def _describe_problem(self) -> str:
        return (
            f"node {self._target.node} at {_format_peer(self._target)} can't be reached"
            f" from {_format_peer(self._source)}: {self._last_error} for {REACH_SECONDS:.0f} s;"
            " look at routes, firewalls and NetworkPolicies between the "
            "nodes, or set spec.network.interface"
        )


def _format_peer(peer: Peer) -> str:
    return f"{peer.address} ({peer.interface})" if peer.interface else peer.address

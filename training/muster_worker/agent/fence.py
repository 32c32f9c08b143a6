"""Decides when an agent that reaches neither the collector nor a peer has to stop its ranks. Pure.

The operator may have started another pod for an unreachable node. But if peers still answer, only the operator is
unreachable, and the ranks continue. Times are on the node's monotonic clock.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence

from muster_worker.contract.ping import PingKind

QUIET_SECONDS = 5.0
"""Ping the peers if the collector has not answered for this time."""

UNANSWERED_SECONDS = 30.0
"""The time after which the log says that no peer answers."""

WAKE_SECONDS = 3.0
"""If the agent itself was frozen, it waits this long for answers to new pings before it decides."""

_MAX_ASKED = 3


def select_asked(node: int, nodes: int) -> Sequence[int]:
    """Return the node ranks of the peers that a node pings: the next two, and one half the job away."""
    offsets = (1, 2, nodes // 2)
    asked = dict.fromkeys((node + offset) % nodes for offset in offsets if offset % nodes)
    return tuple(asked)[:_MAX_ASKED]


class Fence:
    """The contacts of one attempt. `seconds` is the time without any contact after which the ranks have to stop.

    The ranks stop only if a peer has answered during the attempt and has not succeeded since. Otherwise a firewall may
    drop all pings, or the peers may have exited, and missing answers don't mean that this node is cut off.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self._began_at = now
        self._is_logged = False
        self._collector_at = now
        self._contact_at = now
        self._checked_at = now
        self._awake_since = now - WAKE_SECONDS
        self._answers: Dict[int, int] = {}

    @property
    def is_armed(self) -> bool:
        """Whether a peer has answered and still runs, so that a missing answer means that it is unreachable."""
        return PingKind.ALIVE in self._answers.values()

    def record_collector(self, asked_at: float) -> None:
        """Record that the collector answered a request that was sent at `asked_at`."""
        self._collector_at = max(self._collector_at, asked_at)
        self._contact_at = max(self._contact_at, asked_at)

    def record_peer(self, peer: int, kind: int, asked_at: float) -> None:
        """Record a peer's answer to a ping that was sent at `asked_at`."""
        self._answers[peer] = kind
        self._contact_at = max(self._contact_at, asked_at)

    def should_ask(self, now: float) -> bool:
        """Whether to ping the peers: the fence is not armed, or the collector does not answer."""
        return not self.is_armed or now - self._collector_at > QUIET_SECONDS

    def find_line(self, now: float) -> Optional[str]:
        """Return a line for the log, once: the fence is armed, or no peer answers."""
        if self._is_logged or not (self.is_armed or now - self._began_at > UNANSWERED_SECONDS):
            return None
        self._is_logged = True
        if self.is_armed:
            return f"other nodes answer: without contact for {self.seconds:.0f} s this node stops its ranks"
        return "no other node answers over UDP: this node does not stop its ranks if it is cut off"

    def find_reason(self, now: float) -> Optional[str]:
        """Return why the ranks have to stop; None if they may continue. Call this every second."""
        if now - self._checked_at > WAKE_SECONDS:
            self._awake_since = now
        self._checked_at = now
        # If the collector answers, wait for its command to end the attempt.
        if PingKind.OVER in self._answers.values() and now - self._collector_at > QUIET_SECONDS:
            return "the operator has ended this attempt, as another node of the job says"
        silence = now - self._contact_at
        if not self.is_armed or silence < self.seconds or now - self._awake_since < WAKE_SECONDS:
            return None
        return (
            f"this node has reached neither the collector nor another node of the job for {silence:.0f} s "
            "(failurePolicy.fenceSeconds), and may have been replaced"
        )

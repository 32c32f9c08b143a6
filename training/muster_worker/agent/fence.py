"""Decides when an agent that reaches neither the collector nor a peer has to stop its ranks. Pure.

The operator may have started another pod for an unreachable node. But if peers still answer, only the operator is
unreachable, and the ranks continue. Times are on the node's monotonic clock.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence

from muster_worker.contract.ping import PingKind

COLLECTOR_SILENT_SECONDS = 5.0
"""Ping the peers if the collector has not answered for this time."""

UNANSWERED_SECONDS = 30.0
"""The time after which the log says that no peer answers."""

RESUME_SECONDS = 3.0
"""After a freeze of the agent itself, it waits this long for answers to new pings before it decides."""

_MAX_TARGETS = 3


def select_ping_targets(node: int, nodes: int) -> Sequence[int]:
    """Return the node ranks of the peers that a node pings: the next two nodes, and the node half the job away."""
    offsets = (1, 2, nodes // 2)
    targets = dict.fromkeys((node + offset) % nodes for offset in offsets if offset % nodes)
    return tuple(targets)[:_MAX_TARGETS]


class Fence:
    """The answers of collector and peers in one attempt. After `seconds` without an answer the ranks have to stop.

    The ranks stop only if a peer has answered during the attempt and has not succeeded since. Otherwise a firewall may
    drop all pings, or the peers may have exited, and missing answers don't mean that this node is cut off.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self._started_at = now
        self._is_logged = False
        self._collector_answered_at = now
        self._contact_at = now
        self._checked_at = now
        self._resumed_at = now - RESUME_SECONDS
        self._answers: Dict[int, int] = {}

    @property
    def is_armed(self) -> bool:
        """Whether a peer has answered and has not succeeded. If that peer stops answering, it is unreachable."""
        return PingKind.ALIVE in self._answers.values()

    def record_collector_answer(self, sent_at: float) -> None:
        """Record that the collector answered a request that was sent at `sent_at`."""
        self._collector_answered_at = max(self._collector_answered_at, sent_at)
        self._contact_at = max(self._contact_at, sent_at)

    def record_peer_answer(self, peer: int, kind: int, sent_at: float) -> None:
        """Record a peer's answer to a ping that was sent at `sent_at`."""
        self._answers[peer] = kind
        self._contact_at = max(self._contact_at, sent_at)

    def should_ping(self, now: float) -> bool:
        """Whether to ping the peers: the fence is not armed, or the collector does not answer."""
        return not self.is_armed or now - self._collector_answered_at > COLLECTOR_SILENT_SECONDS

    def describe_change(self, now: float) -> Optional[str]:
        """Return a line for the log when the fence is armed, or when no peer answers. Afterwards return None."""
        if self._is_logged or not (self.is_armed or now - self._started_at > UNANSWERED_SECONDS):
            return None
        self._is_logged = True
        if self.is_armed:
            return f"other nodes answer: without contact for {self.seconds:.0f} s this node stops its ranks"
        return "no other node answers over UDP: this node does not stop its ranks if it is cut off"

    def find_stop_reason(self, now: float) -> Optional[str]:
        """Return why the ranks have to stop; None if they may continue. Call this every second."""
        if now - self._checked_at > RESUME_SECONDS:
            self._resumed_at = now
        self._checked_at = now
        # If the collector answers, wait for its command to end the attempt.
        if (
            PingKind.ATTEMPT_ENDED in self._answers.values()
            and now - self._collector_answered_at > COLLECTOR_SILENT_SECONDS
        ):
            return "another node of the job reports that the operator has ended this attempt"
        silence = now - self._contact_at
        if not self.is_armed or silence < self.seconds or now - self._resumed_at < RESUME_SECONDS:
            return None
        return (
            f"this node has reached neither the collector nor another node of the job for {silence:.0f} s "
            "(failurePolicy.fenceSeconds), and may have been replaced"
        )

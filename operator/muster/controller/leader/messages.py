"""The messages between the operator's two processes: JSON, each with the sender's whole state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["starting", "candidate", "leaving"]
"""The main process starts, is ready to lead, or shuts down."""


@dataclass(frozen=True)
class LeaseState:
    """The state of the Lease. Times are monotonic seconds, which all processes of a machine share.

    `leader_term` is None if this replica doesn't hold the Lease. Other replicas may take the Lease after `held_until`,
    unless it is renewed. `holder` is the last known leader's identity.
    """

    leader_term: int | None = None
    held_until: float = float("-inf")
    holder: str | None = None


@dataclass(frozen=True)
class Heartbeat:
    """The message that the main process sends regularly, with the failure messages for /healthz and /readyz.

    `ended_leader_term` is the last term whose work has ended (-1: none).
    """

    liveness_failures: tuple[str, ...] = ()
    readiness_failures: tuple[str, ...] = ("the operator is still starting",)
    ended_leader_term: int = -1
    stage: Stage = "starting"


def encode_message(message: LeaseState | Heartbeat) -> bytes:
    """Encode a message for `decode_lease_state` or `decode_heartbeat`."""
    return json.dumps(asdict(message)).encode()


def decode_lease_state(text: bytes) -> LeaseState:
    """Decode a state."""
    return LeaseState(**json.loads(text))


def decode_heartbeat(text: bytes) -> Heartbeat:
    """Decode a heartbeat."""
    fields = json.loads(text)
    return Heartbeat(
        tuple(fields["liveness_failures"]),
        tuple(fields["readiness_failures"]),
        fields["ended_leader_term"],
        fields["stage"],
    )

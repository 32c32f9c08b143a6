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

    `leader_term` None: this replica doesn't hold the Lease. `held_until`: other replicas may take the Lease after this
    time, unless it is renewed. `holder`: the last known leader's identity.
    """

    leader_term: int | None = None
    held_until: float = float("-inf")
    holder: str | None = None


@dataclass(frozen=True)
class Heartbeat:
    """The message that the main process sends regularly. It has the failure messages for /healthz and /readyz.

    `ended_leader_term` is the last term whose work has ended (-1: none).
    """

    not_alive: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ("it is still starting",)
    ended_leader_term: int = -1
    stage: Stage = "starting"


def encode(message: LeaseState | Heartbeat) -> bytes:
    """Encode a message for `read_state` or `read_heartbeat`."""
    return json.dumps(asdict(message)).encode()


def read_state(text: bytes) -> LeaseState:
    """Decode a state."""
    return LeaseState(**json.loads(text))


def read_heartbeat(text: bytes) -> Heartbeat:
    """Decode a heartbeat."""
    fields = json.loads(text)
    return Heartbeat(
        tuple(fields["not_alive"]), tuple(fields["not_ready"]), fields["ended_leader_term"], fields["stage"]
    )

"""What the operator's two processes tell each other: a line of JSON each, the whole of what one side knows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["starting", "candidate", "leaving"]
"""Whether the main process wants to lead: not yet, yes, not any more."""


@dataclass(frozen=True)
class LeaseState:
    """What the elector knows of the Lease. Times are monotonic seconds, which all processes of a machine share.

    `leader_term` None: it isn't held. `held_until` is when others may take it unless it is renewed; `holder` is who
    leads, as far as is known.
    """

    leader_term: int | None = None
    held_until: float = float("-inf")
    holder: str | None = None


@dataclass(frozen=True)
class Pulse:
    """Sent by each step of the main process' loop: what /healthz and /readyz have to complain of.

    `ended_leader_term` is the last term whose work has ended (-1: none has).
    """

    not_alive: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ("it is still starting",)
    ended_leader_term: int = -1
    stage: Stage = "starting"


def encode(message: LeaseState | Pulse) -> bytes:
    """For `read_state` or `read_pulse`."""
    return json.dumps(asdict(message)).encode()


def read_state(text: bytes) -> LeaseState:
    """A state, as it was encoded."""
    return LeaseState(**json.loads(text))


def read_pulse(text: bytes) -> Pulse:
    """A pulse, as it was encoded."""
    fields = json.loads(text)
    return Pulse(tuple(fields["not_alive"]), tuple(fields["not_ready"]), fields["ended_leader_term"], fields["stage"])

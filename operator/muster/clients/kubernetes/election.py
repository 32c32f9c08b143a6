"""Decide who may lead, from a Lease's content and the time since its last change. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.api.document import JSON
from muster.api.json_fields import mapping, string
from muster.objects.kubernetes.kinds import LEASES, Object

LEASE_SECONDS = 13
"""How long other processes wait after the last renewal that they observed."""

RENEW_SECONDS = 2.0
"""The interval between the leader's renewals."""

GIVE_UP_SECONDS = 10.0
"""A leader that couldn't renew for this time stops; its work ends during the rest of the Lease.

Kubernetes' own controllers try for the same time: an overloaded API server takes seconds to answer.
"""

LOOK_SECONDS = 1.0
"""The interval at which the other processes read the Lease."""

_LEADER_TERMS_BEGIN = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


class Step(enum.Enum):
    """The next step of a process that wants to lead."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class Record:
    """The content of a Lease. `holder` "": it is free; `transitions` None: it was never held."""

    holder: str
    seconds: float
    transitions: int | None
    lease: Object


def record(lease: Object) -> Record:
    """Read a Lease."""
    spec = mapping(lease.get("spec"))
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    return Record(
        holder=string(spec.get("holderIdentity")),
        seconds=float(seconds) if isinstance(seconds, int) else float(LEASE_SECONDS),
        transitions=transitions if isinstance(transitions, int) else None,
        lease=lease,
    )


def next_step(current: Record | None, observed_at: float, now: float, identity: str) -> Step:
    """Decide the next step; `observed_at` is when `current` was first observed, by the same local clock as `now`.

    Clocks of different machines are never compared, so wrong clocks don't matter.
    """
    if current is None:
        return Step.CREATE
    # Its holder released it; or it's ours, from a request whose response was lost.
    if current.holder in ("", identity):
        return Step.TAKE
    return Step.TAKE if now >= observed_at + current.seconds else Step.WAIT


def next_leader_term(current: Record | None, highest: int, now: float) -> int:
    """The term of a process that takes the Lease at `now` (Unix seconds); `highest` is the highest observed term.

    A deleted Lease loses its count, but agents refuse commands of a lower term. So a new Lease's count starts with the
    seconds since 2025. It exceeds every earlier one as long as the Lease changes hands less than once a second and the
    clocks differ by less than the Lease's age. It fits until 2093.
    """
    counted = current.transitions if current is not None else None
    begin = max(0, int(now - _LEADER_TERMS_BEGIN)) if counted is None else counted + 1
    return max(begin, highest + 1)


def taken(current: Record | None, name: str, identity: str, leader_term: int, now: float) -> Object:
    """The Lease with `identity` as its holder from `now` (Unix seconds); other fields stay."""
    at = _shown(now)
    lease: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.name, "metadata": {"name": name}}
    spec: dict[str, JSON] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": at,
        "renewTime": at,
        "leaseTransitions": leader_term,
    }
    return _with(current.lease if current is not None else lease, spec)


def renewed(current: Record, now: float) -> Object:
    """The Lease after its holder's renewal."""
    return _with(current.lease, {"renewTime": _shown(now)})


def released(current: Record, now: float) -> Object:
    """The Lease after its holder's release. The count stays, and another process can lead as soon as it reads it."""
    return _with(current.lease, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _shown(now)})


def _with(lease: Object, changes: dict[str, JSON]) -> Object:
    return {**lease, "spec": {**mapping(lease.get("spec")), **changes}}


def _shown(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

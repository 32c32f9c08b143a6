"""Who may lead, from what a Lease says and for how long it has said so. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.api.document import JSON
from muster.api.json_fields import mapping, string
from muster.kube.kinds import LEASES, Object

LEASE_SECONDS = 13
"""How long others wait after the last renewal that they saw."""

RENEW_SECONDS = 2.0
"""How often a leader renews."""

GIVE_UP_SECONDS = 10.0
"""A leader that couldn't renew for so long stops; the rest of the Lease is for its work to end in.

As long as Kubernetes' own controllers try: a flooded API server takes seconds to answer.
"""

LOOK_SECONDS = 1.0
"""How often the others look."""

_LEADER_TERMS_BEGIN = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


class Step(enum.Enum):
    """What one who wants to lead does next."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class Record:
    """What a Lease says. `holder` "": it is free; `transitions` None: it was never held."""

    holder: str
    seconds: float
    transitions: int | None
    lease: Object


def record(lease: Object) -> Record:
    """What is read from a Lease as the API server has it."""
    spec = mapping(lease.get("spec"))
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    return Record(
        holder=string(spec.get("holderIdentity")),
        seconds=float(seconds) if isinstance(seconds, int) else float(LEASE_SECONDS),
        transitions=transitions if isinstance(transitions, int) else None,
        lease=lease,
    )


def next_step(known: Record | None, observed_at: float, now: float, identity: str) -> Step:
    """`observed_at` is when `known` was first seen as it is now, by the same local clock as `now`.

    Clocks of different machines are never compared, so it doesn't matter how wrong they are.
    """
    if known is None:
        return Step.CREATE
    # It was given back; or it's ours, from a request whose answer was lost.
    if known.holder in ("", identity):
        return Step.TAKE
    return Step.TAKE if now >= observed_at + known.seconds else Step.WAIT


def next_leader_term(known: Record | None, highest: int, now: float) -> int:
    """The term of who takes the Lease at `now` (Unix seconds); `highest` is the highest term that it ever saw.

    A Lease that was deleted takes its count with it, but agents refuse orders of a lower term than they had. So a new
    Lease's count begins with the seconds since 2025, and stays ahead of every earlier one as long as Leases change
    hands less than once a second and the clocks are nearer to each other than the Lease was old. It fits until 2093.
    """
    counted = known.transitions if known is not None else None
    begin = max(0, int(now - _LEADER_TERMS_BEGIN)) if counted is None else counted + 1
    return max(begin, highest + 1)


def taken(known: Record | None, name: str, identity: str, leader_term: int, now: float) -> Object:
    """The Lease as `identity` holds it from `now` (Unix seconds); what else stands in it stays."""
    at = _shown(now)
    lease: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.name, "metadata": {"name": name}}
    spec: dict[str, JSON] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": at,
        "renewTime": at,
        "leaseTransitions": leader_term,
    }
    return _with(known.lease if known is not None else lease, spec)


def renewed(known: Record, now: float) -> Object:
    """The Lease as its holder renews it."""
    return _with(known.lease, {"renewTime": _shown(now)})


def released(known: Record, now: float) -> Object:
    """The Lease as its holder gives it back. The count stays, and the next one leads as soon as it looks."""
    return _with(known.lease, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _shown(now)})


def _with(lease: Object, changes: dict[str, JSON]) -> Object:
    return {**lease, "spec": {**mapping(lease.get("spec")), **changes}}


def _shown(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Decide whether a process may lead, from the Lease's content and the time since its last change. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.objects.kubernetes.kinds import LEASES, Object

LEASE_SECONDS = 13
"""The time after which a Lease without renewals expires."""

RENEW_SECONDS = 2.0
"""The interval between the leader's renewals."""

GIVE_UP_SECONDS = 10.0
"""A leader that can't renew the Lease for this long stops its work.

Kubernetes' own controllers use the same time, because an overloaded API server takes seconds to respond.
"""

POLL_SECONDS = 1.0
"""The interval at which a process checks its state, and retries a failed request."""

CANDIDATE_POLL_SECONDS = 0.5
"""The interval at which candidates read the Lease. After a release, no process leads for half of it on average."""


@dataclass(frozen=True)
class LeaseTimes:
    """The times of a Lease, in seconds. `lease` must be longer than `give_up`, and `give_up` longer than `renew`."""

    lease: int = LEASE_SECONDS
    renew: float = RENEW_SECONDS
    give_up: float = GIVE_UP_SECONDS
    poll: float = POLL_SECONDS
    candidate_poll: float = CANDIDATE_POLL_SECONDS


DEFAULT_TIMES = LeaseTimes()


_TERM_EPOCH = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


class Step(enum.Enum):
    """The next step of a candidate."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class LeaseRecord:
    """The content of a Lease. `holder` is "" for a free Lease, `transitions` None for a Lease that was never held."""

    holder: str
    seconds: float
    transitions: int | None
    lease: Object


def read_lease(lease: Object) -> LeaseRecord:
    """Read a Lease."""
    spec = read_mapping(lease.get("spec"))
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    return LeaseRecord(
        holder=read_string(spec.get("holderIdentity")),
        seconds=float(seconds) if isinstance(seconds, int) else float(LEASE_SECONDS),
        transitions=transitions if isinstance(transitions, int) else None,
        lease=lease,
    )


def choose_next_step(record: LeaseRecord | None, observed_at: float, now: float, identity: str) -> Step:
    """Return the next step of a candidate, which first observed `record` at `observed_at`.

    Both times are of this process' clock, because the clocks of other machines may be wrong.
    """
    if record is None:
        return Step.CREATE
    # The holder released the Lease, or this process acquired it and got no response.
    if record.holder in ("", identity):
        return Step.TAKE
    return Step.TAKE if now >= observed_at + record.seconds else Step.WAIT


def compute_next_leader_term(record: LeaseRecord | None, highest_term: int, now: float) -> int:
    """Return the term for acquiring the Lease at `now` (Unix seconds); `highest_term` is the highest observed term.

    Agents refuse commands of a lower term, so terms must increase even if the Lease is deleted. So a new Lease starts
    with the number of seconds since 2025. This is higher than all earlier terms if the leader changes less than once a
    second. It fits into 32 bits until 2093.
    """
    transitions = record.transitions if record is not None else None
    next_term = max(0, int(now - _TERM_EPOCH)) if transitions is None else transitions + 1
    return max(next_term, highest_term + 1)


def make_acquired_lease(
    record: LeaseRecord | None, name: str, identity: str, leader_term: int, now: float, *, seconds: int = LEASE_SECONDS
) -> Object:
    """Return the Lease with `identity` as its holder from `now` (Unix seconds), which expires after `seconds`."""
    time = _format_time(now)
    lease: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.name, "metadata": {"name": name}}
    spec: dict[str, JSON] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": seconds,
        "acquireTime": time,
        "renewTime": time,
        "leaseTransitions": leader_term,
    }
    return _update_spec(record.lease if record is not None else lease, spec)


def make_renewed_lease(record: LeaseRecord, now: float) -> Object:
    """Return the renewed Lease."""
    return _update_spec(record.lease, {"renewTime": _format_time(now)})


def make_released_lease(record: LeaseRecord, now: float) -> Object:
    """Return the released Lease, which another process can acquire at once. It keeps `leaseTransitions`."""
    return _update_spec(record.lease, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _format_time(now)})


def _update_spec(lease: Object, changes: dict[str, JSON]) -> Object:
    return {**lease, "spec": {**read_mapping(lease.get("spec")), **changes}}


def _format_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

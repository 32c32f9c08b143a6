import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.clients.kubernetes.election import (
    LEASE_SECONDS,
    LeaseRecord,
    Step,
    choose_next_step,
    compute_next_leader_term,
    make_acquired_lease,
    make_released_lease,
    make_renewed_lease,
    read_lease,
)
from muster.objects.kubernetes.kinds import Object

NOW = 1_800_000_000.0


def lease(**spec: JSON) -> Object:
    return {"metadata": {"name": "muster", "resourceVersion": "7", "labels": {"a": "b"}}, "spec": {**spec}}


def held(by: str, seconds: int = 10, transitions: int | None = 4) -> LeaseRecord:
    return read_lease(lease(holderIdentity=by, leaseDurationSeconds=seconds, leaseTransitions=transitions))


@pytest.mark.parametrize(
    ("known", "age", "step"),
    [
        (None, 0, Step.CREATE),
        (held("other"), 0, Step.WAIT),
        (held("other"), 9.9, Step.WAIT),
        (held("other"), 10, Step.TAKE),
        (held("other", seconds=30), 29, Step.WAIT),
        (held(""), 0, Step.TAKE),
        (held("me"), 0, Step.TAKE),
        (read_lease(lease()), 0, Step.TAKE),
        (read_lease({"metadata": {}}), 0, Step.TAKE),
        (read_lease(lease(holderIdentity="other")), LEASE_SECONDS - 0.1, Step.WAIT),
        (read_lease(lease(holderIdentity="other")), LEASE_SECONDS, Step.TAKE),
    ],
)
def test_who_may_take_it(known: LeaseRecord | None, age: float, step: Step) -> None:
    assert choose_next_step(known, 100.0, 100.0 + age, "me") is step


@given(
    counted=st.one_of(st.none(), st.integers(0, 2**30)),
    highest=st.integers(0, 2**30),
    now=st.floats(0, 3e9),
)
def test_a_leader_term_is_above_all_that_were_seen_and_fits(counted: int | None, highest: int, now: float) -> None:
    leader_term = compute_next_leader_term(held("other", transitions=counted), highest, now)
    assert max(counted or 0, highest) < leader_term < 2**31


def test_a_new_lease_goes_on_above_one_that_was_deleted() -> None:
    first = compute_next_leader_term(None, 0, NOW)
    fifth = first + 4
    assert compute_next_leader_term(None, 0, NOW + 60) > fifth
    assert compute_next_leader_term(None, fifth, NOW) > fifth


def test_taking_it_keeps_what_else_stands_in_it() -> None:
    body = make_acquired_lease(held("other"), "muster", "me", 5, NOW)
    assert body["metadata"] == {"name": "muster", "resourceVersion": "7", "labels": {"a": "b"}}
    assert body["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 5,
    }


def test_a_renewal_changes_the_time_alone() -> None:
    mine = read_lease(make_acquired_lease(None, "muster", "me", 5, NOW))
    after = read_lease(make_renewed_lease(mine, NOW + 2))
    assert (after.holder, after.transitions, after.seconds) == ("me", 5, LEASE_SECONDS)
    assert mine.lease != after.lease


def test_what_is_given_back_keeps_its_count() -> None:
    after = read_lease(make_released_lease(read_lease(make_acquired_lease(None, "muster", "me", 5, NOW)), NOW + 2))
    assert (after.holder, after.transitions, after.seconds) == ("", 5, 1)
    assert choose_next_step(after, 0, 0, "other") is Step.TAKE
    assert compute_next_leader_term(after, 0, NOW) == 6

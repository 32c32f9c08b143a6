"""Processor time of the collector: each client's share of it."""

from hypothesis import given
from hypothesis import strategies as st

from muster.collector.server.cpu_budgets import (
    ADDRESS_CUT_OFF_DEBT,
    ADDRESS_RATE,
    CUT_OFF_DEBT,
    POD_RATE,
    UNAUTHENTICATED_RATE,
    CpuBudgets,
    FairShares,
)
from muster.collector.server.limits import Rate


def one_each(_: str) -> float:
    return 1.0


def shares() -> CpuBudgets:
    return CpuBudgets(one_each)


def test_a_pod_that_used_its_burst_waits_until_the_debt_is_paid() -> None:
    cpu = shares()
    cpu.charge_pod("team", "pod", POD_RATE.burst + 0.03, 0.0)

    assert cpu.get_wait_seconds("team", "pod", 0.0) > 0.9
    assert cpu.get_wait_seconds("team", "pod", 1.1) == 0.0


def test_a_namespace_in_debt_keeps_no_other_one_out() -> None:
    cpu = shares()
    for pod in range(10):
        cpu.charge_pod("evil", f"pod-{pod}", 0.2, 0.0)

    assert cpu.get_wait_seconds("evil", "fresh", 0.0) > 0.0
    assert cpu.get_wait_seconds("victim", "pod", 0.0) == 0.0


def test_who_goes_on_in_debt_is_cut_off() -> None:
    cpu = shares()
    cpu.charge_pod("team", "pod", POD_RATE.burst + 0.9 * CUT_OFF_DEBT, 0.0)
    assert not cpu.is_cut_off("pod", 0.0)

    cpu.charge_pod("team", "pod", 0.2 * CUT_OFF_DEBT, 0.0)

    assert cpu.is_cut_off("pod", 0.0)
    assert not cpu.is_cut_off("pod", 60.0)


def test_an_address_that_opens_connections_without_end_loses_its_own_only() -> None:
    cpu, connections = shares(), 0
    while not cpu.is_address_cut_off("10.0.0.1", 0.0):
        cpu.charge_accept("10.0.0.1", 40e-6, 0.0)
        connections += 1
    assert 5_000 < connections < 10_000
    assert not cpu.may_start_handshake("10.0.0.1", 0.0)
    assert cpu.may_start_handshake("10.0.0.2", 0.0)
    assert cpu.may_start_any_handshake(0.0)
    # The next pod with this address need not wait for long.
    for _ in range(100_000):
        cpu.charge_accept("10.0.0.1", 40e-6, 0.0)
    assert not cpu.is_address_cut_off("10.0.0.1", 0.1)
    assert cpu.may_start_handshake("10.0.0.1", 2 * ADDRESS_CUT_OFF_DEBT / ADDRESS_RATE.per_second)


def test_the_time_to_accept_an_agents_connection_is_refunded() -> None:
    cpu = shares()
    for _ in range(10_000):
        cpu.charge_accept("10.0.0.1", 40e-6, 0.0)
        cpu.charge_accept("10.0.0.1", -40e-6, 0.0)
    assert cpu.may_start_handshake("10.0.0.1", 0.0)


def test_an_address_without_time_is_not_greeted_and_others_are() -> None:
    cpu = shares()
    cpu.charge_unauthenticated("10.0.0.1", ADDRESS_RATE.burst + 0.001, 0.0)

    assert not cpu.may_start_handshake("10.0.0.1", 0.0)
    assert cpu.may_start_handshake("10.0.0.2", 0.0)
    assert cpu.may_start_handshake("10.0.0.1", 1.0)


def test_all_strangers_together_have_a_share() -> None:
    cpu = shares()
    for number in range(10):
        cpu.charge_unauthenticated(f"10.0.0.{number}", UNAUTHENTICATED_RATE.burst / 9, 0.0)

    assert not cpu.may_start_any_handshake(0.0)
    assert cpu.may_start_any_handshake(1.0)


def test_what_a_pod_is_charged_its_address_gets_back() -> None:
    cpu = shares()
    cpu.charge_unauthenticated("10.0.0.1", 10.0, 0.0)
    cpu.charge_unauthenticated("10.0.0.1", -10.0, 0.0)

    assert cpu.may_start_handshake("10.0.0.1", 0.0)
    assert cpu.may_start_any_handshake(0.0)


def test_time_is_divided_by_weight_among_those_who_want_it() -> None:
    fair = FairShares(Rate(1.0, 1.0), {"large": 300.0, "small": 100.0, "idle": 100.0}.__getitem__)
    for key in ("large", "small"):
        fair.charge(key, 11.0, 0.0)

    before = fair.get_balance("large", 0.0), fair.get_balance("small", 0.0)
    after = fair.get_balance("large", 4.0), fair.get_balance("small", 4.0)

    assert after[0] - before[0] == 3.0
    assert after[1] - before[1] == 1.0


def test_what_one_leaves_over_goes_to_the_others() -> None:
    fair = FairShares(Rate(1.0, 1.0), one_each)
    fair.charge("modest", 0.1, 0.0)
    fair.charge("greedy", 101.0, 0.0)

    assert fair.get_balance("greedy", 10.0) == -100.0 + 9.9
    assert fair.get_balance("modest", 10.0) == 1.0


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0.0, 2.0), st.floats(0.0, 1.0)), max_size=60))
def test_no_more_is_handed_out_than_the_rate_and_one_burst_each(steps: list[tuple[str, float, float]]) -> None:
    fair, now, used = FairShares(Rate(0.5, 0.5), one_each), 0.0, 0.0
    for key, amount, pause in steps:
        now += pause
        if fair.get_wait_seconds(key, now) == 0.0:
            fair.charge(key, amount, now)
            used += amount

    # each key's last charge may exceed its share
    assert used <= 0.5 * now + 4 * (0.5 + 2.0) + 1e-6
    assert all(fair.get_balance(key, now) <= 0.5 for key in "abcd")


@given(st.floats(0.01, 100.0))
def test_waiting_for_the_returned_time_is_enough(debt: float) -> None:
    fair = FairShares(Rate(0.5, 0.5), one_each)
    fair.charge("other", 1000.0, 0.0)
    fair.charge("key", 0.5 + debt, 0.0)

    assert fair.get_balance("key", fair.get_wait_seconds("key", 0.0) + 1e-3) > -1e-3

"""Stragglers: which ranks are slow, for how long they stay stragglers, and when muster replaces their node."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.spec.failure_policy import FailurePolicy, FailureRule, RuleAction
from muster.api.status.stragglers import MAX_SLOW_RANKS
from muster.core.facts import ProcessState
from muster.core.status.events import list_new_events, list_past_events
from muster.core.status.significant_change import is_significant_change
from muster.core.steps.stragglers import END_FACTOR, REPLACE_SECONDS, SLOW_FACTOR
from unit.core.simulated import World
from unit.core.steps.test_hangs import all_ranks, restart_reasons, start_training, train_for
from unit.core.test_any_operator import run_rounds

NORMAL_BUSY_SECONDS = 0.2
REPLACE_POLICY = FailurePolicy(max_restarts=2, rules=(FailureRule(action="Restart", reasons=("Straggler",)),))


def train_with_busy_times(world: World, busy: Mapping[int, float | None], seconds: float = 5) -> None:
    """Let the ranks train. Each is busy for NORMAL_BUSY_SECONDS per step, except those in `busy`."""
    for rank in all_ranks(world):
        rank.busy_seconds = busy.get(rank.number, NORMAL_BUSY_SECONDS)
    train_for(world, seconds)


@pytest.mark.parametrize(
    ("busy", "slow", "nodes"),
    [
        ({}, None, []),
        ({3: NORMAL_BUSY_SECONDS * SLOW_FACTOR * 0.99}, None, []),
        ({3: NORMAL_BUSY_SECONDS * SLOW_FACTOR * 1.01}, "3", []),
        ({2: NORMAL_BUSY_SECONDS * 2, 3: NORMAL_BUSY_SECONDS * 3}, "2-3", [1]),
        # The node's other rank has no measurement.
        ({2: None, 3: NORMAL_BUSY_SECONDS * 3}, "3", [1]),
        # More than half of the ranks need a measurement.
        ({1: None, 2: None, 0: None, 3: 5.0}, None, []),
        # One fast rank does not make the others stragglers.
        ({0: NORMAL_BUSY_SECONDS / 10}, None, []),
        ({3: 1e300}, None, []),
        # Steps of a few milliseconds differ by chance.
        ({0: 0.001, 1: 0.001, 2: 0.001, 3: 0.009}, None, []),
    ],
)
def test_slow_ranks_and_nodes(busy: Mapping[int, float | None], slow: str | None, nodes: list[int]) -> None:
    world = start_training(None)
    train_with_busy_times(world, busy)
    record = world.status.stragglers
    assert (None if record is None else record.ranks) == slow
    assert ([] if record is None else [node.node for node in record.nodes]) == nodes
    assert world.status.phase == "Running"


def test_the_status_says_which_rank_is_slow_and_by_how_much() -> None:
    world = start_training(None)
    train_with_busy_times(world, {3: 0.42})
    record, details = world.status.stragglers, world.status.ranks
    assert record is not None
    assert details is not None
    sentence = "ank 3 on digits-1 is slower than the others: it is busy for 420 ms per step, 2.1 times the median"
    assert record.message == f"R{sentence}"
    assert f"r{sentence}" in world.status.message
    slow = next(detail for detail in details.details if detail.rank == 3)
    assert (slow.reason, slow.message) == ("Straggler", "it is busy for 420 ms per step, 2.1 times the median")


def test_a_slow_node_is_named_as_a_node() -> None:
    world = start_training(None)
    train_with_busy_times(world, {2: 0.5, 3: 0.6})
    assert world.status.stragglers is not None
    assert world.status.stragglers.message.startswith("All ranks on digits-1 (2-3) are slower than the others: rank 3")


def test_a_change_of_the_stragglers_alone_is_not_significant() -> None:
    world = start_training(None)
    train_with_busy_times(world, {3: 0.5})
    first = world.status
    train_with_busy_times(world, {2: 0.5, 3: NORMAL_BUSY_SECONDS})
    assert first.stragglers != world.status.stragglers
    assert not is_significant_change(first, world.status)
    assert first.stragglers is not None
    failing = first.stragglers.model_copy(update={"is_failure": True})
    assert is_significant_change(first, first.model_copy(update={"stragglers": failing}))


def test_the_same_stragglers_change_neither_the_status_nor_the_events() -> None:
    world = start_training(None)
    before = world.status
    train_with_busy_times(world, {3: 0.5})
    first = world.status
    assert [event.reason for event in list_new_events(before, first)] == ["Straggler"]
    train_with_busy_times(world, {3: 0.47})
    assert world.status.stragglers == first.stragglers
    assert list_new_events(first, world.status) == ()
    assert sum(event.reason == "Straggler" for event in list_past_events(world.status)) == 1
    train_with_busy_times(world, {2: 0.5, 3: 0.47})
    assert [event.reason for event in list_new_events(first, world.status)] == ["Straggler"]


def test_a_straggler_stays_one_until_it_is_clearly_faster() -> None:
    world = start_training(None)
    is_straggler = []
    for factor in (2.0, END_FACTOR + 0.05, END_FACTOR - 0.05, END_FACTOR + 0.05):
        train_with_busy_times(world, {3: NORMAL_BUSY_SECONDS * factor})
        is_straggler.append(world.status.stragglers is not None)
    assert is_straggler == [True, True, False, False]


@pytest.mark.parametrize("policy", [None, FailurePolicy(max_restarts=3)])
def test_without_a_rule_stragglers_are_only_reported(policy: FailurePolicy | None) -> None:
    world = start_training(policy)
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS * 2)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)


def test_a_rule_replaces_the_pod_of_the_slowest_rank_once() -> None:
    world = start_training(REPLACE_POLICY)
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS - 5)
    assert (world.status.attempt, restart_reasons(world)) == (1, [])
    train_with_busy_times(world, {3: 1.0}, 10)
    run_rounds(world, 20)
    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Straggler"])
    assert [node.process.replacement for node in world.nodes] == [0, 1]
    assert world.status.stragglers is None
    restarts = world.status.restarts
    assert restarts is not None
    assert (restarts.failures, restarts.history[0].replaced_pods) == (1, 1)
    assert restarts.history[0].message.startswith("Rank 3 on digits-1 was slower than the others at step"), (
        restarts.history[0].message
    )
    # The new pod is as slow: the Kubernetes node is not the cause.
    train_for(world, 10)
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS * 2)
    assert (world.status.phase, world.status.attempt) == ("Running", 2)
    assert world.status.stragglers is not None


@pytest.mark.parametrize(
    ("max_restarts", "action", "phase"), [(0, "Restart", "Running"), (0, "Ignore", "Running"), (5, "Fail", "Failed")]
)
def test_rules_that_do_not_replace_the_pod(max_restarts: int, action: RuleAction, phase: str) -> None:
    rule = FailureRule(action=action, reasons=("Straggler",))
    world = start_training(FailurePolicy(max_restarts=max_restarts, rules=(rule,)))
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS + 5)
    train_for(world, 3)
    assert world.status.phase == phase
    # Without restarts left, the slow job continues. An ignored straggler needs no restart.
    assert world.status.attempt == 1
    assert world.status.stragglers is not None


def test_each_of_two_slow_nodes_is_replaced_once_although_the_first_stays_slow() -> None:
    world, slow = start_training(REPLACE_POLICY, nodes=6), {2: 1.2, 3: 1.2, 4: 1.0, 5: 1.0}
    for attempt in (2, 3):
        train_with_busy_times(world, slow, REPLACE_SECONDS + 5)
        run_rounds(world, 20)
        assert (world.status.phase, world.status.attempt) == ("Running", attempt)
        train_for(world, 10)
    assert [node.process.replacement for node in world.nodes] == [0, 1, 2, 0, 0, 0]
    train_with_busy_times(world, slow, REPLACE_SECONDS * 2)
    assert (world.status.attempt, restart_reasons(world)) == (3, ["Straggler", "Straggler"])


def test_a_new_operator_replaces_the_node_in_the_status_and_not_the_slowest_one() -> None:
    world, slow = start_training(REPLACE_POLICY, nodes=6), {2: 1.2, 3: 1.2, 4: 1.0, 5: 1.1}
    train_with_busy_times(world, slow, REPLACE_SECONDS + 5)
    run_rounds(world, 20)
    train_for(world, 10)
    train_with_busy_times(world, slow, REPLACE_SECONDS - 5)
    while not (world.status.stragglers is not None and world.status.stragglers.is_failure):
        train_with_busy_times(world, slow, 0.8)
    assert [entry.rank for entry in world.status.stragglers.slowest] == [5, 2, 3, 4]
    world.restart_operator()
    run_rounds(world, 20)
    assert (world.status.phase, world.status.attempt) == ("Running", 3)
    assert [node.process.replacement for node in world.nodes] == [0, 1, 2, 0, 0, 0]


def test_a_rule_to_ignore_ranks_excludes_them_from_later_rules() -> None:
    rules = (FailureRule(action="Ignore", reasons=("Straggler",), ranks=(2, 3)), *REPLACE_POLICY.rules)
    world, slow = start_training(FailurePolicy(max_restarts=3, rules=rules), nodes=6), {2: 1.2, 3: 1.2, 4: 1.0, 5: 1.0}
    train_with_busy_times(world, slow, REPLACE_SECONDS + 5)
    run_rounds(world, 20)
    assert [node.process.replacement for node in world.nodes] == [0, 0, 1, 0, 0, 0]


def test_a_rule_without_the_reason_does_not_apply() -> None:
    world = start_training(FailurePolicy(max_restarts=3, rules=(FailureRule(action="Restart", ranks=(3,)),)))
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS + 5)
    assert (world.status.phase, world.status.attempt) == ("Running", 1)


def test_an_earlier_rule_without_the_reason_does_not_disable_a_later_one() -> None:
    rules = (FailureRule(action="Fail", ranks=(3,)), *REPLACE_POLICY.rules)
    world = start_training(FailurePolicy(max_restarts=3, rules=rules))
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS + 5)
    run_rounds(world, 20)
    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Straggler"])


def test_a_new_operator_completes_the_replacement() -> None:
    world = start_training(REPLACE_POLICY)
    train_with_busy_times(world, {3: 1.0}, REPLACE_SECONDS - 5)
    world.now += 6
    world.run_round(applied=0)
    while not (world.status.stragglers is not None and world.status.stragglers.is_failure):
        world.run_round(applied=0)
    train_with_busy_times(world, {})
    run_rounds(world, 20)
    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Straggler"])
    assert all(node.process.state is ProcessState.RUNNING for node in world.nodes)


@given(busy=st.lists(st.floats(1e-300, 86400.0), min_size=8, max_size=8))
def test_any_busy_times_give_a_status(busy: list[float]) -> None:
    world = start_training(None, nodes=4)
    train_with_busy_times(world, dict(enumerate(busy)), 2)
    record = world.status.stragglers
    if record is not None:
        assert record.count < 8
        assert len(record.slowest) <= MAX_SLOW_RANKS
        assert min(entry.busy_seconds for entry in record.slowest) >= record.median_seconds

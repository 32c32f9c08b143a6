"""Ranks that complete no more steps: which hangs muster detects, and what follows."""

from collections.abc import Iterable

import pytest

from muster.api.spec.failure_policy import FailurePolicy, FailureRule
from muster.api.status.status import Condition
from muster.core.facts import StopRequest
from muster.core.failure_timeouts import STALL_SECONDS
from muster.core.status.conditions import NO_RECENT_STEP, NO_STEP_SECONDS
from muster_worker.contract.collectives import GroupCollective
from unit.core.builders import T0
from unit.core.simulated import SimulatedRank, World
from unit.core.test_any_operator import run_rounds, run_to_the_end, with_suspend
from unit.core.test_restarts import start_world

TIMEOUT = 60
HANG_POLICY = FailurePolicy(max_restarts=2, hang_timeout_seconds=TIMEOUT)


def start_training(policy: FailurePolicy | None, nodes: int = 2) -> World:
    """Return a world whose ranks have completed some steps."""
    world = start_world(policy, nodes)
    train_for(world, 20)
    assert (world.status.phase, stalled_condition(world).status) == ("Running", "False")
    return world


def all_ranks(world: World) -> list[SimulatedRank]:
    return [rank for node in world.nodes for rank in node.ranks]


def train_for(world: World, seconds: float, hanging: Iterable[int] = ()) -> None:
    """Let each rank complete a step every 1.4 s, except those in `hanging`. If all hang, reconcile every 3 s."""
    hanging_ranks = set(hanging)
    interval = 1.4 if any(rank.number not in hanging_ranks for rank in all_ranks(world)) else 3.0
    deadline = world.now + seconds
    while world.now < deadline:
        world.now = min(world.now + interval, deadline)
        for rank in all_ranks(world):
            if rank.number not in hanging_ranks:
                rank.complete_step(world.now)
        run_rounds(world)


def hang_for(world: World, seconds: float = TIMEOUT + 2) -> None:
    train_for(world, seconds, hanging=range(len(all_ranks(world))))


def stalled_condition(world: World) -> Condition:
    find_condition = world.status.find_condition("Stalled")
    assert find_condition is not None
    return find_condition


def restart_reasons(world: World) -> list[str]:
    history = world.status.restarts.history if world.status.restarts is not None else ()
    return [record.reason for record in history]


def test_a_job_that_completes_steps_does_not_hang() -> None:
    world = start_training(HANG_POLICY)
    train_for(world, 3 * TIMEOUT)
    assert (world.status.phase, world.status.attempt, world.status.hang) == ("Running", 1, None)


@pytest.mark.parametrize("stopped", ["stopped by a signal", "stopped by a debugger"])
def test_a_stopped_process_is_the_root_cause_and_not_a_rank_that_was_seen_in_another_line(stopped: str) -> None:
    world = start_training(HANG_POLICY)
    seen = ["train.py:10 in barrier", "train.py:9 in barrier", "train.py:10 in barrier", stopped]
    for rank, activity in zip(all_ranks(world), seen, strict=True):
        rank.activity = activity
    hang_for(world, TIMEOUT + 4)
    assert world.status.restarts is not None
    (record,) = world.status.restarts.history
    assert (record.rank, f"and was {stopped}; " in record.message) == (3, True)


def test_a_hang_restarts_the_ranks_in_their_pods() -> None:
    world = start_training(HANG_POLICY)
    all_ranks(world)[2].activity = "stopped by a signal"
    for number in (0, 1, 3):
        all_ranks(world)[number].activity = "all_reduce"
    hang_for(world, TIMEOUT + 4)
    run_rounds(world, 2)

    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Hung"])
    assert [node.process.replacement for node in world.nodes] == [0, 0]
    assert world.status.restarts is not None
    (record,) = world.status.restarts.history
    assert (record.rank, record.node, record.counts_as) == (2, 1, "Failure")
    assert record.message == (
        f"Rank 2 on digits-1 hung at step {record.step}: it completed no step for {TIMEOUT} s and was stopped by a "
        "signal; 3 others were in all_reduce"
    )


def record_collectives(world: World) -> None:
    """Let rank 1 evaluate, while the others wait in a collective that it has not entered."""
    for rank in all_ranks(world):
        rank.activity = "all_reduce"
        rank.collectives = (GroupCollective("0 (default_pg)", "all_reduce", 7, "all_reduce", 7),)
    all_ranks(world)[1].collectives = (GroupCollective("0 (default_pg)", "all_gather", 6),)


def test_the_rank_that_has_not_entered_a_collective_is_the_root_cause() -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT - 2)
    record_collectives(world)
    hang_for(world, 6)

    assert world.status.restarts is not None
    (record,) = world.status.restarts.history
    assert record.rank == 1
    assert record.message == (
        f"Rank 1 on digits-0 hung at step {record.step}: it completed no step for {TIMEOUT} s and was in all_reduce; "
        "it had not entered all_reduce 7 of process group 0 (default_pg), but 3 other ranks had; its last "
        "collective was all_gather 6 of process group 0 (default_pg); 3 others were in all_reduce"
    )


def test_a_stalled_job_names_the_last_collectives() -> None:
    world = start_training(None)
    hang_for(world, STALL_SECONDS - 10)
    record_collectives(world)
    hang_for(world, 12)

    assert stalled_condition(world).message.endswith(
        ": 4 ranks are in all_reduce; rank 1 has not entered all_reduce 7 of process group 0 (default_pg), but 3 other "
        "ranks have; the last step was 14"
    )
    assert world.status.ranks is not None
    last = [(entry.rank, entry.last_collective) for entry in world.status.ranks.details]
    assert last[0] == (1, "all_gather 6 of process group 0 (default_pg)")
    assert {text for _, text in last[1:]} == {"all_reduce 7 of process group 0 (default_pg)"}


def test_the_condition_names_the_last_step_before_the_ranks_count_as_hanging() -> None:
    world = start_training(None)
    train_for(world, 8, hanging=(2, 3))
    step = all_ranks(world)[2].step
    hang_for(world, NO_STEP_SECONDS)
    assert (stalled_condition(world).status, stalled_condition(world).reason) == ("False", NO_RECENT_STEP)
    assert stalled_condition(world).message.startswith("At least one rank has completed no step since 2025-")
    assert stalled_condition(world).message.endswith(f"(its last one was step {step})")


def test_without_a_timeout_a_hang_is_only_reported() -> None:
    world = start_training(None)
    step = all_ranks(world)[0].step
    hang_for(world, STALL_SECONDS + 2)

    assert (world.status.phase, world.status.attempt) == ("Running", 1)
    assert (stalled_condition(world).status, stalled_condition(world).reason) == ("True", "Hung")
    assert stalled_condition(world).message.startswith("Ranks 0-3 have completed no step since 2025-")
    assert stalled_condition(world).message.endswith(f"; the last step was {step}")
    assert f"; step {step}; ranks 0-3 have completed no step since" in world.status.message
    assert world.status.progress is not None
    assert world.status.progress.steps_per_second == 0
    assert world.status.hang is not None
    assert (world.status.hang.ranks, world.status.hang.count, world.status.hang.is_failure) == ("0-3", 4, False)
    assert {entry.reason for entry in world.status.ranks.details} == {"Hung"}  # type: ignore[union-attr]
    assert all(node.command is not None and node.command.kind == "Start" for node in world.nodes)

    train_for(world, 5)
    assert stalled_condition(world).status == "False"
    assert world.status.progress.steps_per_second is not None
    assert "no step" not in world.status.message


def test_the_report_of_a_hang_does_not_change_while_it_lasts() -> None:
    world = start_training(None)
    hang_for(world, STALL_SECONDS + 2)
    before = world.status
    hang_for(world, 30)
    assert world.status == before


def test_the_jitter_of_reports_does_not_change_the_report_of_a_hang() -> None:
    world = start_training(None)
    # After a lower step, the latest report decides the time of the last step.
    for rank in all_ranks(world):
        rank.step, rank.highest_step_at = 1, world.now
    hang_for(world, STALL_SECONDS + 2)
    before = world.status
    assert before.hang is not None
    for delay in (0.003, -0.001, 0.7, 0.0, -0.02):
        for rank in all_ranks(world):
            assert rank.highest_step_at is not None
            rank.highest_step_at += delay
        run_rounds(world, 3)
        assert world.status == before


def test_the_message_has_the_activities_of_the_ranks() -> None:
    world = start_training(None)
    hang_for(world, STALL_SECONDS - 10)
    for rank, activity in zip(all_ranks(world), ("all_reduce", "all_reduce", "all_gather", "all_reduce"), strict=True):
        rank.activity = activity
    hang_for(world, 12)
    assert stalled_condition(world).message.endswith(
        ": rank 2 is in all_gather, 3 ranks are in all_reduce; the last step was 14"
    )
    assert world.status.hang is not None
    assert world.status.hang.rank == 2


def test_one_hanging_rank_is_enough_for_a_hang() -> None:
    world = start_training(HANG_POLICY)
    train_for(world, TIMEOUT + 4, hanging=[3])
    assert restart_reasons(world) == ["Hung"]
    assert world.status.restarts is not None
    assert world.status.restarts.history[0].rank == 3


def test_ranks_without_a_step_in_this_attempt_do_not_hang() -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT + 4)
    assert world.status.attempt == 2
    # The second attempt loads its checkpoint for a long time.
    hang_for(world, 4 * TIMEOUT)
    assert (world.status.attempt, world.status.hang) == (2, None)
    train_for(world, 3)
    hang_for(world, TIMEOUT + 4)
    assert world.status.attempt == 3


def test_the_step_from_which_a_script_resumes_does_not_count_as_completed() -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT + 4)
    for rank in all_ranks(world):
        rank.report_resumed_step(3500, world.now)
    # The first step compiles the model.
    hang_for(world, 4 * TIMEOUT)
    assert (world.status.attempt, world.status.hang) == (2, None)
    train_for(world, 3)
    hang_for(world, TIMEOUT + 4)
    assert world.status.attempt == 3


def test_ranks_of_a_silent_agent_do_not_hang() -> None:
    world = start_training(HANG_POLICY)
    world.nodes[1].is_frozen = True
    train_for(world, TIMEOUT + 20, hanging=range(4))
    assert (world.status.attempt, world.status.hang) == (1, None)
    world.nodes[1].is_frozen = False
    for rank in all_ranks(world):
        rank.complete_step(world.now)
    train_for(world, 5)
    assert (world.status.attempt, world.status.hang) == (1, None)


def test_old_reports_do_not_show_a_hang() -> None:
    world = start_training(HANG_POLICY)
    for node in world.nodes:
        node.is_frozen = True
    world.now += TIMEOUT + 2
    run_rounds(world, 2)
    assert (world.status.attempt, world.status.hang) == (1, None)


def test_no_rank_hangs_while_a_rank_is_in_a_phase() -> None:
    world = start_training(HANG_POLICY)
    all_ranks(world)[0].phase = "eval"
    hang_for(world, 3 * TIMEOUT)
    assert (world.status.attempt, world.status.hang) == (1, None)

    # The others have waited for rank 0. They get the whole timeout for their next step.
    all_ranks(world)[0].phase, all_ranks(world)[0].phase_ended_at = None, world.now
    hang_for(world, TIMEOUT - 5)
    assert (world.status.attempt, world.status.hang) == (1, None)
    hang_for(world, 9)
    assert world.status.attempt == 2


def test_the_end_of_a_phase_counts_although_its_rank_has_exited() -> None:
    world = start_training(HANG_POLICY)
    all_ranks(world)[0].phase = "save"
    hang_for(world, 2 * TIMEOUT)
    all_ranks(world)[0].phase, all_ranks(world)[0].phase_ended_at = None, world.now
    all_ranks(world)[0].end(world.now, 0, None)
    hang_for(world, TIMEOUT - 5)
    assert (world.status.attempt, world.status.hang) == (1, None)


def test_lower_steps_are_progress_too() -> None:
    world = start_training(HANG_POLICY)
    for number in range(2 * TIMEOUT):
        for rank in all_ranks(world):
            rank.step, rank.highest_step_at = number % 10, world.now
        world.now += 1.4
        run_rounds(world)
    assert (world.status.attempt, world.status.hang) == (1, None)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (FailurePolicy(hang_timeout_seconds=TIMEOUT), f"it completed no step for {TIMEOUT} s; 3 others were stopped"),
        (
            FailurePolicy(
                max_restarts=3, hang_timeout_seconds=TIMEOUT, rules=(FailureRule(action="Fail", reasons=("Hung",)),)
            ),
            "not restarted: failurePolicy.rules[0] says Fail",
        ),
    ],
)
def test_a_hang_fails_a_job_without_a_restart(policy: FailurePolicy, message: str) -> None:
    world = start_training(policy)
    hang_for(world)
    run_rounds(world, 10)
    assert world.status.phase == "Failed"
    failed = world.status.find_condition("Failed")
    assert failed is not None
    assert failed.reason == "Hung"
    assert message in world.status.message
    assert world.status.hang is not None
    assert world.status.hang.is_failure


def test_a_rank_that_continues_while_it_is_stopped_does_not_prevent_the_restart() -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT - 1)
    while world.status.phase == "Running":
        run_rounds(world)
        world.now += 0.4
    for rank in all_ranks(world):
        rank.highest_step_at = world.now
    run_rounds(world, 12)
    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Hung"])


@pytest.mark.parametrize("round_number", range(8))
def test_a_new_operator_completes_the_restart_after_a_hang(round_number: int) -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT - 1)
    while world.status.phase == "Running":
        run_rounds(world)
        world.now += 0.4
    run_rounds(world, round_number)
    world.restart_operator()
    run_rounds(world, 20)
    assert (world.status.phase, world.status.attempt, restart_reasons(world)) == ("Running", 2, ["Hung"])
    assert [node.started_attempts for node in world.nodes] == [[1, 2], [1, 2]]


def test_ranks_do_not_hang_while_a_stop_or_a_suspension_ends_them() -> None:
    stopping = start_training(HANG_POLICY)
    hang_for(stopping, TIMEOUT - 1)
    stopping.stop = StopRequest(stopping.now, "Ctrl-C", 100.0)
    hang_for(stopping, 10)
    assert stopping.status.message.startswith("Stopped by Ctrl-C")

    suspended = start_training(HANG_POLICY)
    hang_for(suspended, TIMEOUT - 1)
    suspended.job = with_suspend(suspended, suspend=True)
    hang_for(suspended, 10)
    run_to_the_end(suspended)
    assert restart_reasons(suspended) == []


def test_a_rank_that_failed_before_the_timeout_is_the_root_cause() -> None:
    world = start_training(HANG_POLICY)
    hang_for(world, TIMEOUT - 1)
    all_ranks(world)[1].end(world.now, 1, None, "ValueError: bad label")
    hang_for(world, 5)
    assert restart_reasons(world) == ["RankFailed"]


def test_a_time_before_the_jobs_creation_counts_as_a_hang() -> None:
    world = start_training(HANG_POLICY)
    for rank in all_ranks(world):
        rank.highest_step_at = T0 - 10**9
    run_rounds(world, 20)
    assert restart_reasons(world) == ["Hung"]

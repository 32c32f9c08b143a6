"""How much of the training is done, and how long the rest takes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.spec.job import Job
from muster.api.status.progress import Progress
from muster.api.status.status import Status
from muster.core.facts import JobFacts, RankFacts
from muster.core.status.completion import compute_percent, estimate_remaining_seconds
from muster_worker.contract.schema import AgentPhase, CommandKind
from muster_worker.contract.trainer_status import MAX_REMAINING_SECONDS, TrainerStatus
from unit.core.builders import (
    START,
    agent,
    command,
    compute_status,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    node,
    rank,
    running_node,
    with_spec,
)


def job_with_total(total: int | None) -> Job:
    return with_spec(job(nodes=1, procs=2), total_steps=total)


def rank_at(number: int, step: int, seconds: float = 10, **report_fields: object) -> RankFacts:
    """Return a rank that has completed `step` so many seconds after the start."""
    running = rank(number, number, step=step, highest_step_at=START + seconds)
    return dataclasses.replace(running, report=dataclasses.replace(running.report, **report_fields))  # type: ignore[arg-type]


def with_trainer(current: RankFacts, seconds: float = 10, **fields: object) -> RankFacts:
    """Return the rank with the progress that it reported so many seconds after the start."""
    status = TrainerStatus(age=0.0, **fields)  # type: ignore[arg-type]
    report = dataclasses.replace(current.report, trainer_status=status)
    return dataclasses.replace(current, report=report, trainer_status_at=START + seconds)


def running(*ranks: RankFacts, attempt: int = 1) -> JobFacts:
    current = running_node(0, *ranks, reported_at=10)
    assert current.agent is not None
    report = dataclasses.replace(current.agent.report, attempt=attempt)
    start = dataclasses.replace(command(CommandKind.START), attempt=attempt)
    return facts(dataclasses.replace(current, agent=dataclasses.replace(current.agent, report=report), command=start))


def compute_progress(current: JobFacts, total: int | None = None, previous: Status | None = None) -> Progress | None:
    return compute_status(job_with_total(total), previous or Status(), current, START + 10.5).progress


def complete(progress: Progress | None) -> tuple[int | None, int | None]:
    assert progress is not None
    return (progress.percent, progress.estimated_remaining_seconds)


@pytest.mark.parametrize(
    ("done", "total", "percent"), [(0, 7, 0), (1, 1000, 0), (999, 1000, 99), (1000, 1000, 100), (5000, 1000, 100)]
)
def test_the_percentage_is_rounded_down(done: int, total: int, percent: int) -> None:
    assert compute_percent(done, total) == percent


@pytest.mark.parametrize(
    ("done", "total", "speed", "seconds"),
    [
        (50, 100, 2.0, 25),
        (99, 100, 3.0, 1),
        (100, 100, None, 0),
        (0, 100, None, None),
        (0, 100, 0.0, None),
        (101, 100, 2.0, None),
        (0, 10**9, 1e-3, None),
    ],
)
def test_the_remaining_time_is_absent_where_it_would_be_a_guess(
    done: int, total: int, speed: float | None, seconds: int | None
) -> None:
    assert estimate_remaining_seconds(done, total, speed) == seconds


@given(st.integers(0, 2**63), st.integers(1, 2**63), st.one_of(st.none(), st.floats(0, 1e12)))
def test_no_numbers_give_nonsense(done: int, total: int, speed: float | None) -> None:
    assert 0 <= compute_percent(done, total) <= 100
    seconds = estimate_remaining_seconds(done, total, speed)
    assert seconds is None or 0 <= seconds <= MAX_REMAINING_SECONDS


def test_without_a_total_nothing_is_estimated() -> None:
    assert complete(compute_progress(running(rank_at(0, 50, mean_steps_per_second=2.0)))) == (None, None)


def test_the_spec_s_total_counts_with_the_slowest_rank() -> None:
    current = running(rank_at(0, 60, mean_steps_per_second=2.0), rank_at(1, 50, mean_steps_per_second=2.0))
    assert complete(compute_progress(current, 100)) == (50, 25)


def test_the_script_s_total_comes_before_the_spec_s() -> None:
    current = running(rank_at(0, 50, total_steps=200, mean_steps_per_second=5.0), rank_at(1, 10))
    assert complete(compute_progress(current, 100)) == (25, 30)


def test_the_trainer_s_steps_come_before_all() -> None:
    reported = with_trainer(
        rank_at(0, 5, total_steps=200, mean_steps_per_second=5.0), percent=29, step=30, total_steps=100
    )
    # before its second report its speed is that of the optimizer's steps
    assert complete(compute_progress(running(reported), 1000)) == (29, 14)
    later = with_trainer(reported, percent=29, step=30, total_steps=100, steps_per_second=7.0)
    assert complete(compute_progress(running(later), 1000)) == (29, 10)


def test_the_trainer_s_own_estimate_counts_if_it_reports_no_steps() -> None:
    reported = with_trainer(rank_at(0, 5), seconds=7, percent=40, remaining_seconds=60)
    # the estimate is of the time of the last step, 3 s after the report
    assert complete(compute_progress(running(reported))) == (40, 57)


def test_a_script_without_steps_has_a_progress() -> None:
    reported = with_trainer(rank(0), seconds=7, percent=40, remaining_seconds=60)
    progress = compute_progress(running(reported))
    assert complete(progress) == (40, 60)
    assert progress is not None
    assert (progress.step, progress.at) == (None, "2025-11-21T04:05:12.000Z")


def test_a_resumed_trainer_s_estimate_is_not_believed() -> None:
    # Transformers divides the 2 s since its start by all 80 steps
    resumed = with_trainer(
        rank_at(0, 2, mean_steps_per_second=1.0), percent=80, remaining_seconds=0, step=80, total_steps=100
    )
    assert complete(compute_progress(running(resumed, attempt=2))) == (80, 20)


def test_a_later_attempt_is_unknown_until_the_script_says_where_it_continues() -> None:
    begun = with_trainer(rank_at(0, 2, mean_steps_per_second=1.0), percent=0, total_steps=100)
    assert complete(compute_progress(running(begun, attempt=1))) == (0, None)
    assert complete(compute_progress(running(begun, attempt=2))) == (None, None)
    counted = rank_at(0, 2, mean_steps_per_second=1.0)
    assert complete(compute_progress(running(counted, attempt=2), 100)) == (None, None)
    reported = rank_at(0, 82, first_script_step=80, mean_steps_per_second=1.0)
    assert complete(compute_progress(running(reported, attempt=2), 100)) == (82, 18)


def test_more_steps_than_the_total_are_100_percent() -> None:
    current = running(rank_at(0, 150, mean_steps_per_second=2.0))
    assert complete(compute_progress(current, 100)) == (100, None)


def test_a_total_that_changes_counts_at_once() -> None:
    before = running(rank_at(0, 50, total_steps=100, mean_steps_per_second=2.0))
    after = running(rank_at(0, 51, total_steps=1000, mean_steps_per_second=2.0))
    assert complete(compute_progress(before)) == (50, 25)
    assert complete(compute_progress(after)) == (5, 475)


def test_ranks_that_do_not_run_have_no_remaining_time() -> None:
    lost = facts(
        node(
            0,
            agent(0, AgentPhase.RUNNING, [rank_at(0, 50, mean_steps_per_second=2.0)]),
            process=exited_process(11, signal=9),
            sent_command=command(CommandKind.START),
        )
    )
    assert complete(compute_progress(lost, 100)) == (50, None)


@pytest.mark.parametrize("total", [None, 100])
def test_a_complete_job_is_at_100_percent_if_its_total_was_known(total: int | None) -> None:
    ended = [exited_rank(number, 9, exit_code=0, step=60) for number in (0, 1)]
    status = compute_status(job_with_total(total), Status(), facts(finished_node(0, *ended)), START + 10)
    assert status.phase == "Succeeded"
    assert complete(status.progress) == ((None, None) if total is None else (100, 0))


def test_a_complete_job_whose_script_stopped_to_report_is_at_100_percent() -> None:
    previous = Status(phase="Running", progress=Progress(step=60, percent=60))
    ended = facts(finished_node(0, exited_rank(0, 9, exit_code=0, step=60), exited_rank(1, 9, exit_code=0, step=60)))
    status = compute_status(job_with_total(None), previous, ended, START + 10)
    assert complete(status.progress) == (100, 0)
